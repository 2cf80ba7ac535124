"""Run the real `hermes` in a home of its own."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import hermes

Run = Callable[..., "subprocess.CompletedProcess[str]"]

SOURCE = Path(hermes.__file__).parents[1]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def environ(home: Path, tmp_path: Path) -> dict[str, str]:
    """A clean environment, with nothing of the person who runs the tests in it."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "HERMES_HOME": str(home),
        "PYTHONPATH": str(SOURCE),
        "LANG": "C.UTF-8",
    }


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
