"""Find where a text occurs in a file under one level of normalisation."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from hermes.tools.files.tokens import Level, Line, Shape, lines_of, pattern_of, token_pattern

SHAPES: dict[Level, tuple[Shape, ...]] = {
    Level.LINE_ENDINGS: (Shape(indent=False, lookalikes=False),),
    Level.INDENTATION: (Shape(indent=True, lookalikes=False),),
    Level.LOOKALIKES: (Shape(indent=False, lookalikes=True), Shape(indent=True, lookalikes=True)),
}
# Past this many tokens the pattern would cost more than a model's edit is worth; only exact matches count then.
_MAX_TOKENS = 20_000
# Above this many places of the anchor, one pass over the text is cheaper than looking around each.
_MAX_ANCHORS = 50
_MAX_AROUND_CHARS = 100_000


class Match(NamedTuple):
    """One place in the file. `pieces` holds, line by line, what stands there for each token asked for."""

    start: int
    end: int
    pieces: tuple[tuple[str, ...], ...] = ()


class Wanted:
    """A text to look for, cut into tokens once for all levels."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines: list[Line] = lines_of(text)
        words = [token.text for line in self.lines for token in line if token.kind == "words" and token.text.strip()]
        self.is_blank = not words
        self.is_huge = len(words) > _MAX_TOKENS

    def matches(self, text: str, shape: Shape) -> list[Match]:
        """Every place in `text`, in order, not overlapping. The text itself must not be blank."""
        pattern = re.compile(pattern_of(self.lines, shape))
        # Where a line break may be an escape or a lone CR, lines cannot be counted by newlines.
        needs_scan = shape.lookalikes or _has_lone_cr(text)
        places = self._scan(text, pattern) if needs_scan else self._seek(text, pattern, shape)
        found = (Match(start, end, self._pieces(text, start, shape)) for start, end in places)
        return [match for match in found if not shape.indent or indents_of(self.lines, match) is not None]

    def _scan(self, text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, int]]:
        """Go through the text; when a plain word of it is rare, only through its surroundings."""
        anchor, breaks = self._plain_word()
        places = [match.start for match in exact_matches(text, anchor, _MAX_ANCHORS + 1)] if anchor else []
        # Each break before the word takes at most one newline of the file, so a match starts in these lines.
        windows = [(_lines_back(text, at, breaks) or 0, at) for at in places[:_MAX_ANCHORS]]
        is_costly = len(places) > _MAX_ANCHORS or sum(at - first for first, at in windows) > _MAX_AROUND_CHARS
        if not anchor or is_costly:
            yield from (found.span() for found in pattern.finditer(text))
            return
        done = 0
        for first, at in windows:
            start = max(first, done)
            while start <= at:
                found = pattern.match(text, start)
                if found is not None and found.end() > at:
                    yield found.span()
                    done = start = found.end()
                else:
                    start += 1

    def _plain_word(self) -> tuple[str, int]:
        """The longest word that no level writes otherwise, and how many line breaks may stand before it."""
        best, best_breaks, breaks = "", 0, 0
        for line in self.lines:
            for token in line:
                if len(token.text) > len(best) and token.text.isascii() and token.text.isalnum():
                    best, best_breaks = token.text, breaks
                breaks += token.kind == "break" or token.text in (r"\n", r"\r")
        return best, best_breaks

    def _seek(self, text: str, pattern: re.Pattern[str], shape: Shape) -> Iterator[tuple[int, int]]:
        """As `_scan`, at the speed of a plain search: a match can only be around its longest line."""
        index, anchor = max(
            (
                (number, "".join(token.text for token in line if token.kind == "words"))
                for number, line in self._filled()
            ),
            key=lambda numbered: len(numbered[1]),
        )
        done = 0
        at = text.find(anchor)
        while at != -1:
            first = _lines_back(text, at, index)
            for start in self._starts(text, first, shape) if first is not None else ():
                found = pattern.match(text, start) if start >= done else None
                if found is not None:
                    yield found.span()
                    done = found.end()
            newline = text.find("\n", at)  # every start for this line has been tried
            at = text.find(anchor, max(newline, done)) if newline != -1 else -1

    def _starts(self, text: str, line_start: int, shape: Shape) -> Iterator[int]:
        """Where in the line at `line_start` a match may begin."""
        if shape.indent:
            yield line_start
            return
        newline = text.find("\n", line_start)
        line_end = len(text) if newline == -1 else newline
        opening = "".join(token.text for token in self.lines[0] if token.kind != "break")
        if not opening:
            yield line_end - 1 if text[line_end - 1 : line_end] == "\r" else line_end
            return
        at = text.find(opening, line_start, line_end)
        while at != -1:
            yield at
            at = text.find(opening, at + 1, line_end)

    def _filled(self) -> Iterator[tuple[int, Line]]:
        return ((number, line) for number, line in enumerate(self.lines) if len(line) > 1)

    def _pieces(self, text: str, start: int, shape: Shape) -> tuple[tuple[str, ...], ...]:
        at = start
        rows = []
        for index, line in enumerate(self.lines):
            row = []
            for token in line:
                opening = index == 0 and token is line[0]
                pattern = token_pattern(token, shape, is_opening=opening, is_last_line=index == len(self.lines) - 1)
                found = re.compile(pattern).match(text, at)
                assert found is not None  # the whole pattern matched here, and each token takes a definite piece
                row.append(found.group())
                at = found.end()
            rows.append(tuple(row))
        return tuple(rows)


def exact_matches(text: str, wanted: str, limit: int | None = None) -> list[Match]:
    """The first `limit` exact places; overlapping ones too, since each of them could be the one that is meant."""
    found: list[Match] = []
    at = text.find(wanted)
    while at != -1 and (limit is None or len(found) < limit):
        found.append(Match(at, at + len(wanted)))
        at = text.find(wanted, at + 1)
    return found


def without_overlaps(matches: list[Match]) -> list[Match]:
    """The matches that a replacement from left to right meets."""
    kept: list[Match] = []
    for match in matches:
        if not kept or match.start >= kept[-1].end:
            kept.append(match)
    return kept


def indents_of(lines: list[Line], match: Match) -> dict[str, str] | None:
    """The file's indentation for each one asked for; None when they do not stand one for one.

    Two depths that fall together, or one depth that stands for two, is other code: nesting differs.
    """
    mapping: dict[str, str] = {}
    for line, pieces in zip(lines, match.pieces, strict=True):
        if line[0].kind == "indent" and mapping.setdefault(line[0].text, pieces[0]) != pieces[0]:
            return None
    return mapping if len(set(mapping.values())) == len(mapping) else None


def _lines_back(text: str, position: int, count: int) -> int | None:
    """Where the line starts that lies `count` lines above the one at `position`."""
    start = text.rfind("\n", 0, position) + 1
    for _ in range(count):
        if start == 0:
            return None
        start = text.rfind("\n", 0, start - 1) + 1
    return start


def _has_lone_cr(text: str) -> bool:
    return "\r" in text and text.count("\r") != text.count("\r\n")
