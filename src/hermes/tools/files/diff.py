"""Unified diffs of large texts, in time that follows what changed."""

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from hermes.tools.files.edits import Span

_CONTEXT_LINES = 3
_MAX_ALIGNED_LINES = 3000
_CHUNK_CHARS = 1 << 16
MAX_DIFF_CHARS = 50_000


def unified_diff(path: str, before: str | None, after: str | None, *, max_chars: int = MAX_DIFF_CHARS) -> str:
    """The change of one file with `a/` and `b/` headers; None stands for no file, and equal texts give "".

    What is longer than `max_chars` is cut at a line, and the last line says so.
    """
    if before == after:
        return ""
    old, new = before or "", after or ""
    name = path.lstrip("/")
    source = "/dev/null" if before is None else f"a/{name}"
    target = "/dev/null" if after is None else f"b/{name}"
    return _cut(source, target, _hunks(old, [_changed(old, new)]), max_chars)


def diff_of_spans(path: str, before: str, spans: Sequence[Span], *, max_chars: int = MAX_DIFF_CHARS) -> str:
    """As `unified_diff`, where it is known what changed: the text after the change is not looked at."""
    name = path.lstrip("/")
    changes = (_Change(span.start, span.end, span.written) for span in spans)
    if not spans:
        return ""
    # Up to the first change the lines of both texts are the same.
    return _cut(f"a/{name}", f"b/{name}", _hunks(before, changes, (spans[0].start, spans[0].first_line)), max_chars)


class _Change(NamedTuple):
    """A part of the old text, and what stands there in the new."""

    start: int
    end: int
    written: str


def _cut(source: str, target: str, hunks: Iterable[list[str]], max_chars: int) -> str:
    parts, size = [f"--- {source}\n", f"+++ {target}\n"], 0
    for hunk in hunks:
        for index, line in enumerate(hunk):
            size += len(line)
            if size > max_chars:
                left = len(hunk) - index
                return "".join(parts) + f"… diff cut after {max_chars} characters; {left} more lines in this part\n"
            parts.append(line)
    return "".join(parts)


def _changed(old: str, new: str) -> _Change:
    head = _common_prefix(old, new)
    tail = min(_common_suffix(old, new), len(old) - head, len(new) - head)
    return _Change(head, len(old) - tail, new[head : len(new) - tail])


def _hunks(old: str, changes: Iterable[_Change], known: tuple[int, int] = (0, 1)) -> Iterator[list[str]]:
    """The hunks of all changes. `known` is a position in the old text near the first of them, and its line."""
    (at, line), shift = known, 0
    for change in _merged(old, changes):
        line += old.count("\n", at, change.start) - old.count("\n", change.start, at)
        old_lines, new_lines = _lines(old[change.start : change.end]), _lines(change.written)
        for group in _groups(old_lines, new_lines):
            yield _hunk(old_lines, new_lines, group, (line, line + shift))
        at = change.start
        # Between changes the texts are equal, so only what changes add or take away moves the lines after them.
        shift += len(new_lines) - len(old_lines)


def _merged(old: str, changes: Iterable[_Change]) -> Iterator[_Change]:
    """The changes widened to whole lines with context; those that touch become one."""
    parts: list[str] = []
    first = done = end = 0
    for change in changes:
        start, wide_end = _widened(old, change.start, change.end)
        if parts and start > end:
            yield _Change(first, end, "".join((*parts, old[done:end])))
            parts.clear()
        if not parts:
            first = done = start
        parts += (old[done : change.start], change.written)
        done, end = change.end, wide_end
    if parts:
        yield _Change(first, end, "".join((*parts, old[done:end])))


def _widened(text: str, start: int, end: int) -> tuple[int, int]:
    at = start
    for _ in range(_CONTEXT_LINES + 1):
        at = text.rfind("\n", 0, at)
        if at == -1:
            break
    first = at + 1
    # One line more than shown: where a change ends at a line's end, the rest of the widening starts behind it.
    at = end - 1
    for _ in range(_CONTEXT_LINES + 2):
        at = text.find("\n", at + 1)
        if at == -1:
            return first, len(text)
    return first, at + 1


def _groups(old: list[str], new: list[str]) -> Iterator[list[tuple[str, int, int, int, int]]]:
    """The changes between two short texts, each with its context, as opcodes."""
    if max(len(old), len(new)) <= _MAX_ALIGNED_LINES:
        yield from SequenceMatcher(None, old, new).get_grouped_opcodes(_CONTEXT_LINES)
        return
    shorter = min(len(old), len(new))
    head = next((index for index in range(shorter) if old[index] != new[index]), shorter)
    tail = next((n for n in range(shorter - head) if old[-1 - n] != new[-1 - n]), shorter - head)
    a, b = len(old) - tail, len(new) - tail
    shown_head, shown_tail = min(head, _CONTEXT_LINES), min(tail, _CONTEXT_LINES)
    yield [
        ("equal", head - shown_head, head, head - shown_head, head),
        ("replace", head, a, head, b),
        ("equal", a, a + shown_tail, b, b + shown_tail),
    ]


def _hunk(
    old: list[str], new: list[str], group: list[tuple[str, int, int, int, int]], first: tuple[int, int]
) -> list[str]:
    (_, a0, _, b0, _), (_, _, a1, _, b1) = group[0], group[-1]
    lines = [f"@@ -{_range(first[0] + a0, a1 - a0)} +{_range(first[1] + b0, b1 - b0)} @@\n"]
    for tag, i0, i1, j0, j1 in group:
        if tag == "equal":
            lines += (_shown(" ", line) for line in old[i0:i1])
        else:
            lines += (_shown("-", line) for line in old[i0:i1])
            lines += (_shown("+", line) for line in new[j0:j1])
    return lines


def _range(start: int, length: int) -> str:
    if length == 1:
        return str(start)
    return f"{start if length else start - 1},{length}"


def _shown(sign: str, line: str) -> str:
    return f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    """Lines with their ends, cut at newlines only: other separators are letters to every other tool."""
    parts = text.split("\n")
    lines = [part + "\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def _common_prefix(a: str, b: str) -> int:
    length, at = min(len(a), len(b)), 0
    while at < length and a[at : at + _CHUNK_CHARS] == b[at : at + _CHUNK_CHARS]:
        at += _CHUNK_CHARS
    at = min(at, length)
    end = min(at + _CHUNK_CHARS, length)
    return at + next((n for n, (x, y) in enumerate(zip(a[at:end], b[at:end], strict=True)) if x != y), end - at)


def _common_suffix(a: str, b: str) -> int:
    length, at = min(len(a), len(b)), 0
    while at < length and _tail(a, at, length) == _tail(b, at, length):
        at += _CHUNK_CHARS
    at = min(at, length)
    left, right = _tail(a, at, length), _tail(b, at, length)
    same = (n for n, (x, y) in enumerate(zip(reversed(left), reversed(right), strict=True)) if x != y)
    return at + next(same, len(left))


def _tail(text: str, skip: int, length: int) -> str:
    """The chunk that ends `skip` characters before the end, of at most what two texts share in length."""
    end = len(text) - skip
    return text[max(end - _CHUNK_CHARS, len(text) - length) : end]
