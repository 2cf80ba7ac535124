"""Check what was written against its own language, and report only what the write has broken."""

import ast
import json
import threading
import tomllib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

import yaml

# `warnings.catch_warnings` swaps process-wide state; one check at a time does that here.
_quiet_parsing = threading.Lock()


@dataclass(frozen=True, slots=True)
class Problem:
    """A syntax error, with the text of the line it is on."""

    message: str
    line: int
    column: int
    source: str = ""

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.message}"


def can_check(path: str) -> bool:
    """Whether the language of `path` is checked in process."""
    return _checker(path) is not None


def check(path: str, text: str) -> Problem | None:
    """The first syntax error of `text`; None when there is none, or no way to tell."""
    checker = _checker(path)
    return checker(text) if checker else None


def new_problem(path: str, before: str | None, after: str) -> Problem | None:
    """The syntax error that `after` has and `before` had not. Parsers tell one error each, so one is compared."""
    problem = check(path, after)
    if problem is None or before is None:
        return problem
    known = check(path, before)
    if known is not None and (known.message, known.source) == (problem.message, problem.source):
        return None
    return problem


def _python(text: str) -> Problem | None:
    try:
        with _quiet_parsing, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        return _problem(text, error.msg, error.lineno or 1, error.offset or 1)
    except ValueError as error:  # a NUL byte in the source
        return _problem(text, str(error), 1, 1)
    except (RecursionError, MemoryError):
        return None  # nested deeper than the parser goes: valid or not, it cannot be told here
    return None


def _json(text: str) -> Problem | None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return _problem(text, error.msg, error.lineno, error.colno)
    except RecursionError:
        return None
    return None


def _yaml(text: str) -> Problem | None:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        for _ in yaml.parse(text, Loader=loader):
            pass
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        return _problem(text, error.problem or str(error), line, column)
    except yaml.YAMLError as error:
        return _problem(text, str(error).splitlines()[0], 1, 1)
    except RecursionError:
        return None
    return None


def _toml(text: str) -> Problem | None:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, _, place = str(error).partition(" (at ")
        numbers = [int(word) for word in place.replace(",", " ").replace(")", " ").split() if word.isdigit()]
        line, column = numbers if len(numbers) == 2 else (text.count("\n") + 1, 1)
        return _problem(text, message, line, column)
    except RecursionError:
        return None
    return None


def _problem(text: str, message: str, line: int, column: int) -> Problem:
    lines = text.split("\n", line)
    source = lines[line - 1].strip() if line <= len(lines) else ""
    return Problem(message, line, column, source)


_CHECKERS: dict[str, Callable[[str], Problem | None]] = {
    ".py": _python,
    ".pyi": _python,
    ".json": _json,
    ".yaml": _yaml,
    ".yml": _yaml,
    ".toml": _toml,
}


def _checker(path: str) -> Callable[[str], Problem | None] | None:
    name = PurePosixPath(path)
    # These are JSON with comments by the custom of the programs that read them.
    if name.suffix == ".json" and (name.name.startswith(("tsconfig", "jsconfig")) or ".vscode" in name.parts):
        return None
    return _CHECKERS.get(name.suffix.lower())
