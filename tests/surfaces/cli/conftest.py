"""Run the real `hermes` in a home of its own."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(environ: dict[str, str], tmp_path: Path) -> Run:
    """`run("config", "show")`: the finished process."""

    def run_it(*words: str, stdin: str = "", **more: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "hermes.surfaces.cli.main", *words],
            input=stdin,
            env={**environ, **more},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run_it
