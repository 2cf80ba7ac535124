"""Which Python runs a script: the project's own where there is one, else the runtime's.

Commands can write to the project's environment, so nothing in it is run to learn about it: its files say what it is.
"""

import os
import re
import sys
import threading
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import CodeType
from typing import NamedTuple, TypeAlias

from hermes.errors import ToolError

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


MAX_CODE_CHARS = 1_000_000

_quiet = threading.Lock()  # guards the filters of warnings, which `catch_warnings` puts back as it found them


class BadScript(ToolError):
    """A script that cannot be compiled: what is wrong with it, with line and caret."""


def compiled(code: str, file: str = "script.py") -> CodeType:
    """The script ready to run; nothing of it is run here. Raises `BadScript`."""
    if len(code) > MAX_CODE_CHARS:
        raise BadScript(
            f"the script has {len(code)} characters, more than the {MAX_CODE_CHARS} that are taken; put data in files"
        )
    try:
        with _quiet, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they would be printed to whoever looks at the runtime
            return compile(code, file, "exec", dont_inherit=True, optimize=0)
    except SyntaxError as error:
        raise BadScript(_with_caret(error)) from error
    except ValueError as error:  # a NUL character, a lone surrogate
        raise BadScript(f"the script cannot be read: {error}") from error
    except (RecursionError, MemoryError, OverflowError) as error:
        why = str(error) or "it is nested too deeply"
        raise BadScript(f"the script cannot be compiled: {type(error).__name__}: {why}") from error


def _with_caret(error: SyntaxError) -> str:
    where = f"line {error.lineno}" if error.lineno else "an unknown line"
    words = f"{type(error).__name__} at {where}: {error.msg}"
    if not error.text:
        return words
    text = error.text.rstrip("\n")
    indent = len(text) - len(text.lstrip())
    start = max((error.offset or 1) - 1, indent)
    width = 1
    if error.end_lineno == error.lineno and error.end_offset and error.end_offset - 1 > start:
        width = error.end_offset - 1 - start
    return f"{words}\n    {text.lstrip()}\n    {' ' * (start - indent)}{'^' * min(width, 200)}"
