"""A home, a project folder and an environment for conversations in a terminal."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from hermes.testing.server import ScriptedServer
from tests.surfaces.cli.interactive.terminal import Terminal, hermes
from tests.tools.real_backends import sshd

__all__ = ["sshd"]

Start = Callable[..., "AbstractContextManager[Terminal]"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def start(environ: dict[str, str], project: Path) -> Start:
    """`start(server, "--continue", columns=60, NO_COLOR="1")`: a conversation in a terminal."""

    def run_it(
        server: ScriptedServer, *words: str, columns: int = 80, **more: str
    ) -> "AbstractContextManager[Terminal]":
        settings: Mapping[str, Any] = {**environ, "TERM": "xterm-256color", **more}
        model = ("--model", "scripted", "--base-url", server.base_url)
        return hermes(*model, *words, environ=settings, cwd=project, columns=columns)

    return run_it
