"""Read V4A patches: several files, hunks found by their text. Parsing says exactly where a patch is wrong."""

import re
from dataclasses import dataclass, field
from typing import TypeAlias

from hermes.errors import ToolError

_HEADER = re.compile(
    r"^\s*\*\*\*\s*(Update|Add|Create|Delete|Remove|Move|Rename)\s+File\s*:\s*(.+?)\s*$", re.IGNORECASE
)
_MOVE_TO = re.compile(r"^\s*\*\*\*\s*Move\s+to\s*:\s*(.+?)\s*$", re.IGNORECASE)
_BEGIN = re.compile(r"^\s*\*\*\*\s*Begin\s+Patch\s*$", re.IGNORECASE)
_END = re.compile(r"^\s*\*\*\*\s*End\s+Patch\s*$", re.IGNORECASE)
_END_OF_FILE = re.compile(r"^\s*\*\*\*\s*End\s+of\s+File\s*$", re.IGNORECASE)
_NUMBERS = re.compile(r"^-(\d+)(?:,\d+)?\s+\+\d+(?:,\d+)?\s*(?:@@)?\s*(.*)$")
_FENCE = re.compile(r"^\s*```[\w-]*\s*$")
_ARROW = re.compile(r"\s+(?:->|=>|→)\s+")


class PatchError(ToolError):
    """A patch that was refused whole. Nothing was written."""


@dataclass(slots=True)
class Hunk:
    """One change: the lines that are there, and the lines that shall be. `line` is where it starts in the patch."""

    line: int
    hints: tuple[str, ...] = ()  # each is looked for after the one before it
    at_line: int | None = None  # from a header with numbers, as in a unified diff
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    is_at_end: bool = False


@dataclass(slots=True)
class Update:
    path: str
    line: int
    hunks: list[Hunk] = field(default_factory=list)
    move_to: str | None = None


@dataclass(slots=True)
class Add:
    path: str
    line: int
    lines: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Delete:
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Move:
    path: str
    move_to: str
    line: int


FileChange: TypeAlias = Update | Add | Delete | Move


def parse(patch: str) -> list[FileChange]:
    """The file changes of `patch`, in order. Raises `PatchError` naming the line of the patch.

    Forgiven, since no meaning is lost: missing Begin and End lines, code fences, lines before the first header,
    context lines without their leading space, blank context lines, and headers of a unified diff.
    """
    changes: list[FileChange] = []
    for number, line in _body(patch):
        header = _HEADER.match(line)
        if header:
            changes.append(_started(header.group(1).lower(), _unquoted(header.group(2)), number))
        elif changes:
            _continue(changes[-1], number, line)
        elif line.strip():
            raise PatchError(
                f"patch line {number}: expected '*** Update File: path' (or Add, Delete, Move), found {line[:80]!r}"
            )
    if not changes:
        raise PatchError("the patch names no file; start each with '*** Update File: path' (or Add, Delete, Move)")
    for change in changes:
        _check(change)
    return changes


def _body(patch: str) -> list[tuple[int, str]]:
    """The numbered lines between Begin and End, or all that there are."""
    lines = [(number, line.removesuffix("\r")) for number, line in enumerate(patch.split("\n"), 1)]
    begin = next((index for index, (_, line) in enumerate(lines) if _BEGIN.match(line)), None)
    if begin is not None:
        lines = lines[begin + 1 :]
    end = next((index for index, (_, line) in enumerate(lines) if _END.match(line)), None)
    if end is not None:
        return lines[:end]
    while lines and (not lines[-1][1].strip() or _FENCE.match(lines[-1][1])):
        lines.pop()
    while begin is None and lines and (not lines[0][1].strip() or _FENCE.match(lines[0][1])):
        lines.pop(0)
    return lines


def _started(verb: str, name: str, number: int) -> FileChange:
    if not name:
        raise PatchError(f"patch line {number}: the path is missing")
    match verb:
        case "update":
            source, target = _arrow(name)
            return Update(source, number, move_to=target)
        case "add" | "create":
            return Add(name, number)
        case "delete" | "remove":
            return Delete(name, number)
        case _:
            source, target = _arrow(name)
            if not target:
                raise PatchError(f"patch line {number}: write '*** Move File: old/path -> new/path'")
            return Move(source, target, number)


def _continue(change: FileChange, number: int, line: str) -> None:
    match change:
        case Add():
            change.lines.append(line)
        case Update():
            _continue_update(change, number, line)
        case Delete() | Move():
            if line.strip():
                raise PatchError(
                    f"patch line {number}: nothing may follow a Delete or Move header, found {line[:80]!r}"
                )


def _continue_update(change: Update, number: int, line: str) -> None:
    moved = _MOVE_TO.match(line)
    if moved:
        change.move_to = _unquoted(moved.group(1))
    elif line.startswith("@@"):
        change.hunks.append(_hunk(number, line))
    elif _END_OF_FILE.match(line):
        if change.hunks:
            change.hunks[-1].is_at_end = True
    elif not _is_layout(change, line):
        if not change.hunks:
            change.hunks.append(Hunk(number))
        _add_line(change.hunks[-1], line)


def _is_layout(change: Update, line: str) -> bool:
    """Lines that belong to a unified diff or to the patch's looks."""
    if line.startswith("\\ No newline"):
        return True
    return not change.hunks and (line.startswith(("--- ", "+++ ")) or not line.strip())


def _add_line(hunk: Hunk, line: str) -> None:
    sign, text = line[:1], line[1:]
    if sign == "-":
        hunk.before.append(text)
    elif sign == "+":
        hunk.after.append(text)
    else:
        # A context line whose leading space was forgotten is still context: it has to be in the file.
        context = text if sign == " " else line
        hunk.before.append(context)
        hunk.after.append(context)


def _hunk(number: int, line: str) -> Hunk:
    hint = line[2:].strip().removesuffix("@@").strip()
    numbers = _NUMBERS.match(line[2:].strip())
    if numbers:
        hint = numbers.group(2).removesuffix("@@").strip()
    return Hunk(number, (hint,) if hint else (), int(numbers.group(1)) if numbers else None)


def _check(change: FileChange) -> None:
    if isinstance(change, Add):
        change.lines = _added(change)
    if not isinstance(change, Update):
        return
    kept: list[Hunk] = []
    outer: tuple[str, ...] = ()
    for hunk in change.hunks:
        if not hunk.before and not hunk.after:
            outer += hunk.hints  # two @@ lines in a row narrow the place down
            continue
        hunk.hints, outer = outer + hunk.hints, ()
        _drop_blank_tail(hunk)
        if hunk.before == hunk.after:
            raise PatchError(f"patch line {hunk.line}: the hunk changes nothing; prefix lines with - and +")
        kept.append(hunk)
    change.hunks = kept
    if not kept and change.move_to is None:
        raise PatchError(f"patch line {change.line}: no hunk for {change.path!r}; add lines with -, + or a space")


def _drop_blank_tail(hunk: Hunk) -> None:
    """Blank lines before the next header belong to the patch's layout, not to the file."""
    while hunk.before and hunk.after and hunk.before[-1] == hunk.after[-1] == "":
        hunk.before.pop()
        hunk.after.pop()


def _added(change: Add) -> list[str]:
    lines = change.lines
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    if not any(line.startswith("+") for line in lines):
        return lines
    for offset, line in enumerate(lines, 1):
        if line and not line.startswith("+"):
            raise PatchError(
                f"patch line {change.line + offset}: each line of an added file starts with '+', found {line[:80]!r}"
            )
    return [line[1:] for line in lines]


def _arrow(name: str) -> tuple[str, str | None]:
    parts = _ARROW.split(name, maxsplit=1)
    return (_unquoted(parts[0]), _unquoted(parts[1])) if len(parts) == 2 else (name, None)


def _unquoted(name: str) -> str:
    for quote in ("`", '"', "'"):
        if len(name) > 2 and name.startswith(quote) and name.endswith(quote):
            return name[1:-1]
    return name
