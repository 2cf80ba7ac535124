"""Replace a text in a file where it is found without doubt; say how it was found, or what comes near."""

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

from hermes.errors import ToolError
from hermes.tools.files.encoding import Endings
from hermes.tools.files.fit_replacement import ending_at, fitted, with_endings
from hermes.tools.files.text_match import (
    SHAPES,
    Match,
    Region,
    WantedText,
    exact_matches,
    nearest_regions,
    without_overlaps,
)
from hermes.tools.files.tokens import Level, lines_of

_PLACES_NAMED = 10
_PROVING_CHARS = 8


class EditError(ToolError):
    """An edit that was not applied. The file is as it was."""


class NotFoundError(EditError):
    """The old text is nowhere, under no level; `regions` come near it and were not touched."""

    def __init__(self, message: str, regions: tuple[Region, ...]) -> None:
        super().__init__(message)
        self.regions = regions


class AmbiguousError(EditError):
    """The old text is in several places; `lines` are where they begin, the first few of them."""

    def __init__(self, message: str, lines: tuple[int, ...]) -> None:
        super().__init__(message)
        self.lines = lines


@dataclass(frozen=True, slots=True)
class Span:
    """One changed place: character offsets in the old text and in the new, the new text, and its lines there."""

    start: int
    end: int
    new_start: int
    written: str
    first_line: int
    last_line: int

    @property
    def new_end(self) -> int:
        return self.new_start + len(self.written)


@dataclass(frozen=True)
class Edited:
    """The text before an edit, and what changed in it. A no-op has no spans and a reason in `note`."""

    before: str
    level: Level
    spans: tuple[Span, ...]
    note: str = ""

    @cached_property
    def text(self) -> str:
        """The text after the edit; put together when somebody asks, since a large file is stored without it."""
        parts: list[str] = []
        at = 0
        for span in self.spans:
            parts += (self.before[at : span.start], span.written)
            at = span.end
        return "".join((*parts, self.before[at:])) if self.spans else self.before

    @property
    def length(self) -> int:
        """Of the text after the edit."""
        return len(self.before) + sum(len(span.written) - (span.end - span.start) for span in self.spans)

    @property
    def is_noop(self) -> bool:
        return not self.spans


def replace(text: str, old: str, new: str, *, replace_all: bool = False, made_before: Level | None = None) -> Edited:
    """Put `new` where `old` is. Raises `EditError` unless there is exactly one place, or all are wanted.

    Levels are tried in order, and the first that finds anything decides. Outside the spans every character stays.
    An edit that is already in the text is a no-op. `made_before` says at which level this very edit went into the
    file once; then a place that only a looser level finds is another one, and is left alone.
    """
    if not old:
        raise EditError("old_string is empty; to make a new file use write_file")
    if old == new:
        raise EditError("old_string and new_string are identical, so there is nothing to change")
    if made_before is not None and old not in text and (made_before is Level.EXACT or _position(text, new) is not None):
        return Edited(text, made_before, (), "this edit was made before, and the old text is gone; nothing was changed")
    level, matches, pairs = _find(text, old, new, replace_all=replace_all)
    if not matches:
        return _not_found(text, old, new)
    pending = [(match, written) for match, written in pairs if not is_in_place(text, match, written)]
    if not pending:
        line = _line_at(text, matches[0].start)
        return Edited(text, level, (), f"the edit is already in place at line {line}; nothing was changed")
    if len(matches) > 1 and not replace_all:
        raise _ambiguous(text, old, level, matches)
    return compose(text, level, pending)


def compose(text: str, level: Level, changes: list[tuple[Match, str]]) -> Edited:
    """`text` with every match replaced by its own string; the matches are in order and do not overlap."""
    spans: list[Span] = []
    at = shift = 0
    line = 1
    for match, written in changes:
        line += text.count("\n", at, match.start)
        last = line + written.count("\n")
        last_shown = max(last - 1, line) if written.endswith("\n") else last
        spans.append(Span(match.start, match.end, match.start + shift, written, line, last_shown))
        shift += len(written) - (match.end - match.start)
        at, line = match.end, last
    return Edited(text, level, tuple(spans))


def find(
    text: str, old: str, *, every: bool = True, whole_lines: bool = False
) -> tuple[Level, list[Match], WantedText]:
    """The places of `old` at the first level that has any, and `old` in tokens; without `every`, only some of many."""
    wanted = WantedText(old)
    found = _kept(text, exact_matches(text, old, None if every else _PLACES_NAMED + 1), whole_lines)
    level, found = (Level.EXACT, found) if found else _find_loosely(text, wanted, whole_lines)
    return level, found, wanted


def _find_loosely(text: str, wanted: WantedText, whole_lines: bool = False) -> tuple[Level, list[Match]]:
    if not wanted.is_blank and not wanted.is_huge:
        for level, shapes in SHAPES.items():
            for shape in shapes:
                found = _kept(text, wanted.matches(text, shape), whole_lines)
                if found:
                    return level, found
    return Level.EXACT, []


def _kept(text: str, matches: list[Match], whole_lines: bool) -> list[Match]:
    if not whole_lines:
        return matches
    return [match for match in matches if match.start == 0 or text[match.start - 1] in "\n\r"]


def written_for(text: str, match: Match, old: WantedText, new: str) -> str:
    """What takes the place of `match`, fitted to the file."""
    if match.pieces:
        return fitted(text, match, old.lines, lines_of(new))
    if with_endings(old.text, "\n") == with_endings(new, "\n"):
        return new  # the edit is about line endings, so they are meant as written
    return with_endings(new, ending_at(text, match))


def _find(text: str, old: str, new: str, *, replace_all: bool) -> tuple[Level, list[Match], list[tuple[Match, str]]]:
    level, found, wanted = find(text, old, every=replace_all)
    matches = without_overlaps(found) if replace_all else found
    return level, matches, [(match, written_for(text, match, wanted, new)) for match in matches]


def is_in_place(text: str, match: Match, written: str) -> bool:
    """Whether the match is a part of its own replacement, which already stands around it."""
    there = text[match.start : match.end]
    if there == written:
        return True
    inside = written.find(there)
    while inside != -1:
        if inside <= match.start and text.startswith(written, match.start - inside):
            return True
        inside = written.find(there, inside + 1)
    return False


def _not_found(text: str, old: str, new: str) -> Edited:
    regions = nearest_regions(text, old)
    present = _position(text, new)
    if present is not None and has_replaced(text, present, new, regions):
        line = _line_at(text, present)
        note = f"old_string is not in the file and new_string already is, at line {line}; nothing was changed"
        return Edited(text, Level.EXACT, (), note)
    hint = "read the file again and copy the text exactly"
    if regions:
        places = ", ".join(f"{region.first_line}-{region.last_line}" for region in regions)
        hint = f"the nearest text is at lines {places}; nothing was changed"
    raise NotFoundError(f"old_string was not found; {hint}", regions)


def has_replaced(text: str, present: int, new: str, regions: tuple[Region, ...]) -> bool:
    """Whether the new text at `present` may be taken for an edit that was made before.

    Not when other text resembles the old one more: then the old text was only written wrongly. A few letters that
    resemble nothing prove nothing either.
    """
    if not regions:
        return len(new.strip()) >= _PROVING_CHARS
    first = _line_at(text, present)
    last = first + new.rstrip("\n").count("\n")
    return regions[0].first_line <= last and first <= regions[0].last_line


def _position(text: str, new: str) -> int | None:
    """Where `new` stands, as an edit would have written it; nowhere when it is blank."""
    if not new.strip():
        return None
    for written in dict.fromkeys(with_endings(new, ending.value) for ending in Endings):
        at = text.find(written)
        if at != -1:
            return at
    matches = _find_loosely(text, WantedText(new))[1]
    return matches[0].start if matches else None


def _ambiguous(text: str, old: str, level: Level, matches: list[Match]) -> AmbiguousError:
    count = text.count(old) if level is Level.EXACT else len(matches)
    lines = tuple(_line_at(text, match.start) for match in matches[:_PLACES_NAMED])
    named = ", ".join(map(str, lines)) + (", …" if count > len(lines) else "")
    return AmbiguousError(
        f"old_string is in {max(count, len(matches))} places (lines {named}, level {level}); "
        "add lines around it until it is unique, or set replace_all",
        lines,
    )


def _line_at(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def line_starts(text: str) -> list[int]:
    """The offset at which each line begins; line n starts at index n - 1."""
    starts = [0]
    at = text.find("\n")
    while at != -1:
        starts.append(at + 1)
        at = text.find("\n", at + 1)
    return starts


def line_of(starts: list[int], position: int) -> int:
    """The number of the line that holds `position`."""
    return bisect_right(starts, position)
