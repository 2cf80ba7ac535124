"""Work a parsed patch out in memory: what every file will hold, or the first reason why the patch cannot go in."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypeAlias

from hermes.errors import ToolError
from hermes.seams import Environment
from hermes.tools.files import edits
from hermes.tools.files.encoding import UTF8, encode, line_endings
from hermes.tools.files.fit_replacement import with_endings
from hermes.tools.files.text_match import Match, Region, nearest_regions
from hermes.tools.files.tokens import Level
from hermes.tools.files.v4a import Add, Delete, FileChange, Hunk, Move, PatchError, Update
from hermes.tools.files.workspace import TextFile, Workspace, WorkspacePath

Texts: TypeAlias = Mapping[str, str | None]  # by path; None says that there is no such file
_ORDER = list(Level)


@dataclass(frozen=True, slots=True)
class Planned:
    """One file after the patch. `before` None: it is made; `after` None: it goes. `origin`: where it was moved from."""

    path: str
    before: str | None
    after: str | None
    origin: str | None = None


@dataclass(slots=True)
class PatchPlan:
    """All changes of a patch; applying every one of them, or none, is the caller's part."""

    files: list[Planned] = field(default_factory=list)
    level: Level = Level.EXACT  # the loosest that any hunk needed
    notes: list[str] = field(default_factory=list)

    @property
    def is_noop(self) -> bool:
        return not self.files


def paths_of(changes: Iterable[FileChange]) -> list[str]:
    """Every path the patch speaks of, each once: what `plan` has to know the text of."""
    found: dict[str, None] = {}
    for change in changes:
        found[change.path] = None
        target = change.move_to if isinstance(change, Update | Move) else None
        if target:
            found[target] = None
    return list(found)


def plan(changes: Iterable[FileChange], texts: Texts) -> PatchPlan:
    """The plan for `changes` on files that hold `texts`. Raises `PatchError` unless every part of it fits."""
    board = _Board(texts)
    for change in changes:
        match change:
            case Add():
                board.add(change)
            case Delete():
                board.delete(change)
            case Move():
                board.move(change.path, change.move_to, change.line)
            case Update():
                board.update(change)
    return board.result()


class _Board:
    """The files as they stand while the patch is worked out."""

    def __init__(self, texts: Texts) -> None:
        self._first = texts
        self._now = dict(texts)
        self._origin: dict[str, str] = {}
        self._level = Level.EXACT
        self._notes: list[str] = []

    def add(self, change: Add) -> None:
        text = "".join(line + "\n" for line in change.lines)
        there = self._now.get(change.path)
        if there is None:
            self._now[change.path] = text
        elif with_endings(there, "\n") == text:
            self._notes.append(f"{change.path}: already there with this text")
        else:
            raise PatchError(
                f"patch line {change.line}: {change.path!r} exists already; use '*** Update File' to change it"
            )

    def delete(self, change: Delete) -> None:
        self._text(change.path, change.line)
        self._now[change.path] = None

    def move(self, source: str, target: str, line: int) -> None:
        text = self._text(source, line)
        if source == target:
            raise PatchError(f"patch line {line}: {source!r} is moved to itself")
        if self._now.get(target) is not None:
            raise PatchError(f"patch line {line}: {target!r} exists already, so nothing can be moved there")
        self._now[source], self._now[target] = None, text
        self._origin[target] = self._origin.pop(source, source)

    def update(self, change: Update) -> None:
        path = change.path
        text = self._text(path, change.line)
        found: list[tuple[Match, str, Hunk]] = []
        for hunk in change.hunks:
            after = found[-1][0].end if found else 0
            placed = _place(path, text, hunk, after)
            if placed is None:
                self._notes.append(f"{path}: the hunk at patch line {hunk.line} is already in place")
                continue
            level, match, written = placed
            self._level = max(self._level, level, key=_ORDER.index)
            found.append((match, written, hunk))
        found.sort(key=lambda change_: change_[0][:2])
        for (one, _, first), (other, _, second) in pairwise(found):
            if other.start < one.end:
                raise PatchError(
                    f"{path}: the hunks at patch lines {first.line} and {second.line} overlap; make them one"
                )
        if found:
            self._now[path] = edits.compose(text, self._level, [(match, written) for match, written, _ in found]).text
        if change.move_to is not None:
            self.move(path, change.move_to, change.line)

    def result(self) -> PatchPlan:
        files = [
            Planned(path, self._first.get(path), text, self._origin.get(path))
            for path, text in self._now.items()
            if text != self._first.get(path)
        ]
        return PatchPlan(files, self._level, self._notes)

    def _text(self, path: str, line: int) -> str:
        text = self._now.get(path)
        if text is None:
            raise PatchError(f"patch line {line}: no file {path!r}; check the path, or use '*** Add File' to make it")
        return text


def _place(path: str, text: str, hunk: Hunk, after: int) -> tuple[Level, Match, str] | None:
    """Where the hunk goes and what it writes there; None when it is in place already."""
    if not hunk.before:
        return _insertion(path, text, hunk)
    old, new = _joined(hunk.before), _joined(hunk.after)
    level, matches, wanted = edits.find(text, old, whole_lines=True)
    if not matches:
        regions = nearest_regions(text, old)
        made = edits.find(text, new, whole_lines=True)[1] if hunk.after else []
        if made and edits.has_replaced(text, made[0].start, new, regions):
            return None
        raise _not_found(path, hunk, regions)
    match = _chosen(path, text, hunk, matches, after)
    written = edits.written_for(text, match, wanted, new)
    if edits.is_in_place(text, match, written):
        return None
    return level, match, written


def _chosen(path: str, text: str, hunk: Hunk, matches: list[Match], after: int) -> Match:
    """The one match that is meant: the only one, or the only one that the hunk's own marks leave."""
    if len(matches) == 1:
        return matches[0]
    if hunk.hints:
        start = _after_hints(path, text, hunk)
        later = [match for match in matches if match.start >= start]
        if later:
            return later[0]
    starts = edits.line_starts(text)
    lines = [edits.line_of(starts, match.start) for match in matches]
    if hunk.at_line in lines:
        return matches[lines.index(hunk.at_line)]
    if hunk.is_at_end and matches[-1].end >= len(text.rstrip("\r\n")):
        return matches[-1]
    behind = [match for match in matches if match.start >= after > 0]  # hunks of a file are in its order
    if len(behind) == 1:
        return behind[0]
    named = ", ".join(map(str, lines[:10]))
    raise PatchError(
        f"{path}: the hunk at patch line {hunk.line} fits in {len(matches)} places (lines {named}); "
        "add context lines, or name the function after @@"
    )


def _insertion(path: str, text: str, hunk: Hunk) -> tuple[Level, Match, str] | None:
    """A hunk of added lines only: after the line its hint names, or at the end of the file."""
    new = with_endings(_joined(hunk.after), line_endings(text).main.value)
    if hunk.hints:
        at = _after_hints(path, text, hunk)
    elif hunk.is_at_end or not text:
        at = len(text)
    else:
        raise PatchError(
            f"{path}: the hunk at patch line {hunk.line} only adds lines, so its place is unknown; add a context line, "
            "or end it with '*** End of File'"
        )
    if at and text[at - 1] not in "\n\r":
        # After an unended last line: the break goes between, and the file stays without a final one.
        new = line_endings(text).main.value + new.rstrip("\r\n")
    if text.startswith(new, at) or (at == len(text) and text.endswith(new)):
        return None
    return Level.EXACT, Match(at, at), new


def _after_hints(path: str, text: str, hunk: Hunk) -> int:
    """The start of the line after the last hint; each hint is the first line after the one before that has it."""
    at = 0
    for hint in hunk.hints:
        found = _hint_line(text, hint, at)
        if found is None:
            raise PatchError(f"{path}: the line {hint!r} named after @@ (patch line {hunk.line}) is not in the file")
        at = found
    return at


def _hint_line(text: str, hint: str, at: int) -> int | None:
    """Where the line after the hint's starts; a line equal to the hint goes before one that only contains it."""
    partial: int | None = None
    while at < len(text):
        newline = text.find("\n", at)
        end = len(text) if newline == -1 else newline
        line = text[at:end].strip()
        following = min(end + 1, len(text))
        if line == hint or line.rstrip(":{ ") == hint.rstrip(":{ "):
            return following
        if partial is None and hint in line:
            partial = following
        at = end + 1
    return partial


def _not_found(path: str, hunk: Hunk, regions: tuple[Region, ...]) -> PatchError:
    near = "; ".join(f"lines {region.first_line}-{region.last_line}:\n{region.text}" for region in regions[:1])
    hint = f"the nearest text is at {near}" if near else "read the file again and copy the context exactly"
    return PatchError(f"{path}: the hunk at patch line {hunk.line} was not found; {hint}")


def _joined(lines: list[str]) -> str:
    return "".join(line + "\n" for line in lines)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One file's change with the bytes ready. `data` None: the file goes. `mode` None: that of a new file."""

    place: WorkspacePath
    before: str | None
    after: str | None
    old_data: bytes
    data: bytes | None
    mode: int | None


def steps_of(plan: PatchPlan, files: Mapping[str, TextFile]) -> list[Step]:
    """The steps of `plan`: what is written comes first, what goes comes last.

    A moved file keeps its encoding and mode. Raises `UnencodableError` before anything is written.
    """
    steps = []
    for change in plan.files:
        file = files[change.path]
        source = files[change.origin] if change.origin else file
        encoding = source.decoded.encoding if source.decoded else UTF8
        data = encode(change.after, encoding) if change.after is not None else None
        info = source.place.info
        mode = info.mode & 0o7777 if info else None
        steps.append(Step(file.place, change.before, change.after, file.data, data, mode))
    return sorted(steps, key=lambda step: step.data is None)


async def apply(environment: Environment, workspace: Workspace, steps: Sequence[Step]) -> None:
    """Do every step. When one fails, those before it are undone and the error goes to the model."""
    done: list[Step] = []
    try:
        for step in steps:
            done.append(step)
            if step.data is None:
                await workspace.remove(step.place)
            else:
                await workspace.write(step.place, step.data, mode=step.mode)
    except (ToolError, OSError) as error:
        failures = await _undo(environment, workspace, done)
        state = f"could not be undone in {', '.join(failures)}" if failures else "was undone"
        raise ToolError(
            f"{done[-1].place.given!r} could not be changed ({error}); what was written before it {state}"
        ) from error


async def _undo(environment: Environment, workspace: Workspace, done: Sequence[Step]) -> list[str]:
    """Put back what each step found, the last first; return the names where that failed."""
    failures = []
    for step in reversed(done):
        try:
            if step.before is not None:
                info = step.place.info
                await workspace.put(step.place.resolved, step.old_data, mode=info.mode & 0o7777 if info else None)
            elif await environment.stat(step.place.resolved) is not None:
                await workspace.remove(replace(step.place, path=step.place.resolved))
        except (ToolError, OSError):
            failures.append(repr(step.place.given))
    return failures
