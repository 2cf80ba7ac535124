"""Show which parts of a file resemble a text that is not in it. A suggestion only: no edit goes by likeness."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from heapq import nlargest

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
