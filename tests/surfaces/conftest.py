"""A home of its own for commands that are really run."""

import os
from pathlib import Path

import pytest

import hermes

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
