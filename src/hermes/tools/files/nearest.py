"""Show which parts of a file resemble a text that is not in it. A suggestion only: no edit goes by likeness."""

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


@dataclass(frozen=True, slots=True)
class Region:
    """Lines of the file that resemble what was asked for, numbered from 1; `text` is their beginning."""

    first_line: int
    last_line: int
    text: str
    likeness: float


def nearest_regions(text: str, wanted: str, count: int = 3) -> tuple[Region, ...]:
    """The `count` regions most like `wanted`, best first; empty when nothing is."""
    lines = text.split("\n")
    asked = wanted.strip("\r\n").split("\n")
    starts = [*_by_equal_lines(lines, asked), *_by_alike_lines(lines, asked)]
    regions: list[Region] = []
    for start in dict.fromkeys(starts):
        first = max(start, 0)
        last = min(start + len(asked), len(lines))
        if first >= last or any(first < region.last_line and last > region.first_line - 1 for region in regions):
            continue
        region_text = "\n".join(lines[first:last])
        likeness = _likeness(region_text, wanted)
        if likeness >= _MIN_LIKENESS:
            shown = "\n".join(lines[first : min(last, first + _MAX_SHOWN_LINES)])[:_MAX_SHOWN_CHARS]
            regions.append(Region(first + 1, last, shown, round(likeness, 2)))
    return tuple(sorted(regions, key=lambda region: -region.likeness)[:count])


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
