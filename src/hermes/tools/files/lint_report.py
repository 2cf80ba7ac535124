"""The `lint` field of a write's result: what the write has broken, by our own parsers or the language's program."""

import ast
import json
import re
import shlex
import threading
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import yaml

from hermes.errors import ToolError
from hermes.seams import Decision, ExecResult, ToolContext

MAX_LINTED_CHARS = 1_000_000
TOO_LARGE = {"status": "skipped", "message": f"no syntax check for texts over {MAX_LINTED_CHARS} characters"}
_MAX_OUTPUT_CHARS = 2000
_TIMEOUT_S = 10.0
_NOT_INSTALLED = 213  # a code of our own: fish ends with 127 for a syntax error
_FINE = {"status": "ok", "output": ""}
_PLACE = re.compile(r"\b(?:line )?\d+\b(?=[:,) ]|$)")
# tsc checks types as well, of which one file alone says little: codes from 1000 to 1999 are about syntax.
_TSC = (
    'd=$(mktemp -d) && trap \'rm -rf "$d"\' EXIT && cd "$d" && cat > {name} && '
    "tsc --noEmit --noResolve --noLib --skipLibCheck --allowJs --jsx preserve --pretty false {name} "
    "| grep -E 'error TS1[0-9]{{3}}:'; [ ${{PIPESTATUS[1]}} -ne 0 ]"
)
# A .js file is a script or a module, which only its package tells; it is wrong when it is neither.
_NODE = (
    "t=$(cat); o=$(printf '%s\\n' \"$t\" | node --check - 2>&1) || "
    "m=$(printf '%s\\n' \"$t\" | node --check --input-type=module - 2>&1) || {{ "
    'case $o in *"outside a module"*|*"token \'export\'"*) o=$m;; esac; '
    "case $o in *\"Unexpected token '<'\"*) exit 0;; esac; "  # JSX, which node does not read
    "printf '%s\\n' \"$o\"; exit 1; }}"
)
# The name may be there and lead to no toolchain.
_RUSTFMT = (
    f"rustfmt --version >/dev/null 2>&1 || exit {_NOT_INSTALLED}; rustfmt --edition 2021 --emit stdout >/dev/null"
)


class _Linter(NamedTuple):
    """A program, and the shell command that has it read a text from its input; it never runs the text."""

    name: str
    command: str
    is_by_line: bool = True  # each line of its output is one error, so that known ones can be left out


_BASH = _Linter("bash", "bash -n")
_TYPESCRIPT = _Linter("tsc", _TSC)
_PROGRAMS = {
    ".sh": _BASH,
    ".bash": _BASH,
    ".zsh": _Linter("zsh", "zsh -n /dev/stdin"),
    ".fish": _Linter("fish", "fish --no-execute /dev/stdin"),
    ".js": _Linter("node", _NODE, is_by_line=False),
    ".cjs": _Linter("node", "node --check -", is_by_line=False),
    ".mjs": _Linter("node", "node --check --input-type=module -", is_by_line=False),
    **dict.fromkeys((".ts", ".tsx", ".mts", ".cts", ".jsx"), _TYPESCRIPT),
    ".go": _Linter("gofmt", "gofmt -e >/dev/null"),
    ".rs": _Linter("rustfmt", _RUSTFMT, is_by_line=False),
    ".rb": _Linter("ruby", "ruby -c >/dev/null"),
    ".php": _Linter("php", "php -l"),
    ".lua": _Linter("luac", "luac -p -"),
}


async def lint(ctx: ToolContext, path: str, before: str | None, after: str) -> dict[str, Any]:
    """What `after` gets wrong that `before` did not."""
    if len(after) > MAX_LINTED_CHARS:
        return dict(TOO_LARGE)
    if can_check(path):
        problem = await ctx.in_thread(new_problem, path, before, after)
        return {"status": "error", "output": f"{path}: {problem}"} if problem else dict(_FINE)
    program = _PROGRAMS.get(PurePosixPath(path).suffix.lower())
    if program is None:
        return {"status": "skipped", "message": "no syntax check for this kind of file"}
    return await _by_program(ctx, program, path, (before, after))


async def _by_program(ctx: ToolContext, program: _Linter, path: str, texts: tuple[str | None, str]) -> dict[str, Any]:
    command = program.command.format(name=shlex.quote(PurePosixPath(path).name))

    async def check(text: str) -> ExecResult:
        # A subshell, so that leaving it does not end the session's own shell; the input is read in any case.
        there = f"(command -v {program.name} >/dev/null || {{ cat >/dev/null; exit {_NOT_INSTALLED}; }}; {command})"
        own, stdin = Decision.own("check syntax"), text.encode("utf-8", "replace")
        return await ctx.environment.execute(there, own, ctx.scope, timeout_s=_TIMEOUT_S, stdin=stdin)

    before, after = texts
    try:
        now = await check(after)
        was = await check(before) if before is not None and now.exit_code not in (0, _NOT_INSTALLED) else None
    except ToolError as error:  # the file is written already, and that must be told
        return {"status": "skipped", "message": f"the check could not be run: {error}"}
    if now.exit_code == _NOT_INSTALLED:
        return {"status": "skipped", "message": f"{program.name}, which would check this file, is not installed"}
    if now.timed_out:
        return {"status": "skipped", "message": f"{program.name} took longer than {_TIMEOUT_S:g} s to check this file"}
    if now.exit_code == 0:
        return dict(_FINE)
    known = Counter(map(_placeless, _lines(was.output if was else "")))
    lines = _lines(now.output)
    new = [line for line in lines if not _taken(known, _placeless(line))]
    if lines and not new:
        return dict(_FINE)
    shown = new if program.is_by_line else lines
    return {"status": "error", "output": "\n".join(shown)[:_MAX_OUTPUT_CHARS] or f"{program.name} refuses this text"}


def _lines(output: str) -> list[str]:
    """What the program says, without the calls inside it that led there."""
    lines = [line for line in output.splitlines() if line.strip()]
    return [line for line in lines if not line.lstrip().startswith(("at ", "Node.js v", "(node:", "(Use `node"))]


def _placeless(line: str) -> str:
    return _PLACE.sub("#", line)


def _taken(known: "Counter[str]", line: str) -> bool:
    """Whether this is one of the errors known, each of which accounts for one."""
    known[line] -= 1
    return known[line] >= 0


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
