"""Which Python runs a script: the project's own where there is one, else the runtime's.

Commands can write to the project's environment, so nothing in it is run to learn about it: its files say what it is.
"""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

Version: TypeAlias = tuple[int, int]

OLDEST: Version = (3, 8)
_MOST_CHARS = 64 << 10
# `version` is written by venv, `version_info` by virtualenv and uv.
_VENV_LINE = re.compile(r"^version(?:_info)?[ \t]*=[ \t]*(\d{1,3})\.(\d{1,3})", re.MULTILINE)
_CONDA_FILE = re.compile(r"python-(\d{1,3})\.(\d{1,3})[.\d]*-[^-]+\.json")


class Interpreter(NamedTuple):
    """A Python, and its version as its environment states it."""

    program: str
    version: Version


def project_python(environ: Mapping[str, str]) -> Interpreter:
    """The Python of the active virtual or conda environment when it is usable, else our own."""
    ours = Interpreter(sys.executable, sys.version_info[:2])
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = environ.get(variable)
        if not prefix:
            continue
        if Path(prefix) == Path(sys.prefix):
            return ours
        program = Path(prefix) / "bin" / "python"
        version = _stated_version(Path(prefix)) if os.access(program, os.X_OK) else None
        if version is not None and version >= OLDEST:
            return Interpreter(str(program), version)
    return ours


def _stated_version(prefix: Path) -> Version | None:
    try:
        if (settings := prefix / "pyvenv.cfg").is_file():
            with settings.open(encoding="utf-8", errors="replace") as file:
                found = _VENV_LINE.search(file.read(_MOST_CHARS))
        else:
            names = (_CONDA_FILE.fullmatch(file.name) for file in (prefix / "conda-meta").iterdir())
            found = next(filter(None, names), None)
    except OSError:  # it is no environment, or not ours to read
        return None
    return (int(found[1]), int(found[2])) if found else None
