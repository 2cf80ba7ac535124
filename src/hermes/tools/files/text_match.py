"""Find where a text occurs in a file under one level of normalisation, and else what comes nearest to it."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from heapq import nlargest
from typing import NamedTuple, TypeAlias

from hermes.tools.files.tokens import Level, Line, Shape, lines_of, pattern_of, token_pattern

SHAPES: dict[Level, tuple[Shape, ...]] = {
    Level.LINE_ENDINGS: (Shape(indent=False, lookalikes=False),),
    Level.INDENTATION: (Shape(indent=True, lookalikes=False),),
    Level.LOOKALIKES: (Shape(indent=False, lookalikes=True), Shape(indent=True, lookalikes=True)),
}
# Past this many tokens the pattern would cost more than a model's edit is worth; only exact matches count then.
_MAX_TOKENS = 20_000
# A piece that is found more often than this narrows nothing down.
_MAX_ANCHORS = 1000
_ANCHORS_TRIED = 8
_LOOSEST = Shape(indent=True, lookalikes=True)

Windows: TypeAlias = list[tuple[int, int]]


class Match(NamedTuple):
    """One place in the file. `pieces` holds, line by line, what stands there for each token asked for."""

    start: int
    end: int
    pieces: tuple[tuple[str, ...], ...] = ()


class WantedText:
    """A text to look for, cut into tokens once for all levels."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines: list[Line] = lines_of(text)
        words = [token.text for line in self.lines for token in line if token.kind == "words" and token.text.strip()]
        self.is_blank = not words
        self.is_huge = len(words) > _MAX_TOKENS
        self._narrowed: tuple[str, Windows | None] | None = None  # the text that was last looked through, and where

    def matches(self, text: str, shape: Shape) -> list[Match]:
        """Every place in `text`, in order, not overlapping. The text itself must not be blank."""
        pattern = re.compile(pattern_of(self.lines, shape))
        spans = (found.span() for window in self._windows(text, shape) for found in pattern.finditer(text, *window))
        found = (Match(start, end, self._pieces(text, start, shape)) for start, end in spans)
        return [match for match in found if not shape.indent or indents_of(self.lines, match) is not None]

    def _windows(self, text: str, shape: Shape) -> Windows:
        """The parts of `text` that can hold a match; found once for all levels where the loosest one allows it."""
        if self._narrowed is None or self._narrowed[0] is not text:
            self._narrowed = (text, self._around(text, _LOOSEST))
        windows = self._narrowed[1]
        if windows is None:
            windows = self._around(text, shape)
        return [(0, len(text))] if windows is None else windows

    def _around(self, text: str, shape: Shape) -> Windows | None:
        """The lines around a piece of the wanted text that has to be there literally; None when none is rare."""
        for piece, before, after in self._anchors(shape):
            places = exact_matches(text, piece, _MAX_ANCHORS + 1)
            if len(places) <= _MAX_ANCHORS:
                return _merged((_lines_back(text, at, before), _lines_on(text, at, after)) for at, *_ in places)
        return None

    def _anchors(self, shape: Shape) -> list[tuple[str, int, int]]:
        """The longest pieces that every match has as they are, each with the line breaks before and after it."""
        found: list[tuple[str, int]] = []
        piece, breaks = "", 0
        for token in (token for line in self.lines for token in line):
            if token.kind == "words" and token_pattern(token, shape) == re.escape(token.text):
                piece += token.text
                continue
            found += [(piece, breaks)] if piece else []
            piece = ""
            # An escape may stand for a line break, and takes at most one newline of the file.
            breaks += token.kind == "break" or token.text in (r"\n", r"\r")
        longest = sorted(dict(reversed(found)).items(), key=lambda anchor: -len(anchor[0]))[:_ANCHORS_TRIED]
        return [(piece, before, breaks - before) for piece, before in longest]

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


def _lines_back(text: str, position: int, count: int) -> int:
    """Where the line starts that lies `count` lines above the one at `position`."""
    start = text.rfind("\n", 0, position) + 1
    for _ in range(count):
        if start == 0:
            break
        start = text.rfind("\n", 0, start - 1) + 1
    return start


def _lines_on(text: str, position: int, count: int) -> int:
    """Past the end of what a match at `position` can reach with `count` line breaks, so that no match sees the edge."""
    end = position
    for _ in range(count + 2):
        end = text.find("\n", end) + 1
        if end == 0:
            return len(text)
    return end


def _merged(windows: Iterable[tuple[int, int]]) -> Windows:
    merged: Windows = []
    for start, end in windows:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    return merged


_MAX_SHOWN_LINES = 12
_MAX_SHOWN_CHARS = 1500
_MAX_COMPARED_CHARS = 4000
_MAX_COMPARED_LINES = 20_000
_MIN_LIKENESS = 0.4
_LARGE_CHARS = 1_000_000
_MAX_WORDS = 6  # each costs a search of the whole text
_RARE = 20
_WORD = re.compile(r"\w{5,}")


@dataclass(frozen=True, slots=True)
class Region:
    """Lines of the file that resemble what was asked for, numbered from 1; `text` is their beginning."""

    first_line: int
    last_line: int
    text: str
    likeness: float


def nearest_regions(text: str, wanted: str, count: int = 3) -> tuple[Region, ...]:
    """The `count` regions most like `wanted`, best first; empty when nothing is."""
    asked = wanted.strip("\r\n").split("\n")
    regions: list[Region] = []
    for first_line, lines in _sections(text, asked):
        regions += _regions(first_line, lines, asked, wanted)
    return tuple(sorted(regions, key=lambda region: -region.likeness)[:count])


def _sections(text: str, asked: list[str]) -> Iterator[tuple[int, list[str]]]:
    """The parts that are looked at, with the number of their first line: of a large text, those with a rare word."""
    if len(text) <= _LARGE_CHARS:
        yield 1, text.split("\n")
        return
    places: set[int] = set()
    for word in sorted(set(_WORD.findall("\n".join(asked)[:_MAX_COMPARED_CHARS])), key=len, reverse=True)[:_MAX_WORDS]:
        found: list[int] = []
        at = text.find(word)
        while at != -1 and len(found) <= _RARE:
            found.append(at)
            at = text.find(word, at + 1)
        places.update(found if len(found) <= _RARE else ())
    done, line = 0, 1
    for place in sorted(places):
        if place < done:
            continue
        start = _line_edge(text, place, -len(asked) - 1)
        end = _line_edge(text, place, len(asked) + 1)
        start = max(start, done)
        line += text.count("\n", done, start)
        yield line, text[start:end].removesuffix("\n").split("\n")
        line += text.count("\n", start, end)
        done = end


def _line_edge(text: str, place: int, lines: int) -> int:
    """The start of the line that lies so many lines after the place, or before it."""
    for _ in range(abs(lines)):
        found = text.find("\n", place) if lines > 0 else text.rfind("\n", 0, max(place, 0))
        if found == -1:
            return len(text) if lines > 0 else 0
        place = found + 1 if lines > 0 else found
    return place if lines > 0 else place + 1


def _regions(first_line: int, lines: list[str], asked: list[str], wanted: str) -> list[Region]:
    starts = [*_by_equal_lines(lines, asked), *_by_alike_lines(lines, asked)]
    regions: list[Region] = []
    for start in dict.fromkeys(starts):
        first = max(start, 0)
        last = min(start + len(asked), len(lines))
        taken = ((region.first_line - first_line, region.last_line - first_line + 1) for region in regions)
        if first >= last or any(first < end and last > begin for begin, end in taken):
            continue
        region_text = "\n".join(lines[first:last])
        likeness = _likeness(region_text, wanted)
        if likeness >= _MIN_LIKENESS:
            shown = "\n".join(lines[first : min(last, first + _MAX_SHOWN_LINES)])[:_MAX_SHOWN_CHARS]
            regions.append(Region(first_line + first, first_line + last - 1, shown, round(likeness, 2)))
    return regions


def _by_equal_lines(lines: list[str], asked: list[str]) -> Iterator[int]:
    """Starts of windows that share the most text in lines equal but for outer space."""
    where: dict[str, list[int]] = {}
    for index, line in enumerate(asked[:200]):
        if len(line.strip()) > 3:
            where.setdefault(line.strip(), []).append(index)
    votes: Counter[int] = Counter()
    for number, line in enumerate(lines):
        for index in where.get(line.strip(), ()):
            votes[number - index] += min(len(line), 80)
    return (start for start, _ in votes.most_common(6))


def _by_alike_lines(lines: list[str], asked: list[str]) -> Iterator[int]:
    """Starts of windows around lines that resemble the longest line asked for."""
    index, longest = max(enumerate(asked), key=lambda numbered: len(numbered[1].strip()))
    key = longest.strip()[:400]
    if len(key) < 3:
        return
    matcher = SequenceMatcher(None, b=key, autojunk=False)
    scored: list[tuple[float, int]] = []
    for number, line in enumerate(lines[:_MAX_COMPARED_LINES]):
        matcher.set_seq1(line.strip()[:400])
        if matcher.real_quick_ratio() >= 0.6 and matcher.quick_ratio() >= 0.6:
            ratio = matcher.ratio()
            if ratio >= 0.6:
                scored.append((ratio, -number))
    for _, negative in nlargest(6, scored):
        yield -negative - index


def _likeness(region: str, wanted: str) -> float:
    a, b = region[:_MAX_COMPARED_CHARS], wanted[:_MAX_COMPARED_CHARS]
    return SequenceMatcher(None, a, b, autojunk=len(a) > 500).ratio()
