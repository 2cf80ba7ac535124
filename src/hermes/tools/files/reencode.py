"""Store a new text in the way an existing file is stored: its encoding, byte order mark and line endings."""

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import NamedTuple

from hermes.errors import ToolError
from hermes.redact import MARKER, Redactor, UnknownMarker
from hermes.tools.files.edits import Edited
from hermes.tools.files.encoding import UTF8, Decoded, Encoding, Endings, UnencodableError, encode, line_endings

_MAX_ALIGNED_LINES = 5000
_STEP_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The bytes to store, the text they hold, and a note when the file could not keep its encoding."""

    data: bytes
    text: str
    note: str = ""


def rewrite(content: str, before: Decoded | None) -> Rewritten:
    """`content` as the bytes of the file. Writing back what was read from a file gives the same bytes.

    Raises `UnencodableError` for text that no encoding can hold.
    """
    if before is None:
        return Rewritten(encode(content, UTF8), content)
    if before.encoding.bom:
        content = content.removeprefix("\ufeff")
    text = endings_kept(content, before.text)
    try:
        return Rewritten(encode(text, before.encoding), text)
    except UnencodableError:
        data = encode(text, Encoding("utf-8"))
        return Rewritten(
            data, text, f"the file was {before.encoding.name}, which cannot hold this text; it is UTF-8 now"
        )


def stored(edited: Edited, data: bytes, encoding: Encoding) -> bytes:
    """The bytes of the file after the edit. Those outside the spans are the old ones, not made anew.

    Raises `UnencodableError` when the file's encoding cannot hold what is written.
    """
    if encoding.is_wide:
        return encode(edited.text, encoding)
    is_single = edited.before.isascii() or encoding.codec != UTF8.codec  # one byte for each character
    bare, source = Encoding(encoding.codec), memoryview(data)
    parts: list[bytes | memoryview] = []
    at = len(encoding.bom)
    char_at = 0
    for span in edited.spans:
        between = char_at, span.start
        if is_single:
            start = at + span.start - char_at
        else:
            newlines = edited.before.count("\n", *between) if parts else span.first_line - 1
            start = _byte_at(data, at, edited.before, between, newlines)
        parts += (source[at if parts else 0 : start], encode(span.written, bare, first_line=span.first_line))
        at = start + len(encode(edited.before[span.start : span.end], bare))
        char_at = span.end
    return b"".join((*parts, source[at if parts else 0 :]))


def endings_kept(content: str, before: str) -> str:
    """`content` with the line endings of `before`, unless it brings carriage returns of its own."""
    if content == before.replace("\r\n", "\n"):
        return before
    if "\r\n" not in before or "\r\n" in content:
        return content
    endings = line_endings(before)
    if "\n" not in before.replace("\r\n", ""):
        return content.replace("\n", "\r\n")
    return _aligned(content, before, endings.main if endings.main is not Endings.CR else Endings.LF)


def _aligned(content: str, before: str, main: Endings) -> str:
    """For mixed endings: a line that stays keeps its own, a new line gets the most common one."""
    old = before.split("\n")
    bare = [line.removesuffix("\r") if index < len(old) - 1 else line for index, line in enumerate(old)]
    new = content.split("\n")
    out = [line + main.value for line in new[:-1]]
    for a, b, size in _blocks(bare, new):
        for step in range(size):
            if a + step < len(old) - 1 and b + step < len(new) - 1:
                out[b + step] = old[a + step] + "\n"
    return "".join(out) + new[-1]


def _blocks(old: list[str], new: list[str]) -> list[tuple[int, int, int]]:
    if max(len(old), len(new)) <= _MAX_ALIGNED_LINES:
        return [(block.a, block.b, block.size) for block in SequenceMatcher(None, old, new).get_matching_blocks()]
    shorter = min(len(old), len(new))
    head = next((index for index in range(shorter) if old[index] != new[index]), shorter)
    tail = next((n for n in range(shorter - head) if old[-1 - n] != new[-1 - n]), shorter - head)
    return [(0, 0, head), (len(old) - tail, len(new) - tail, tail)]


def _byte_at(data: bytes, at: int, text: str, between: tuple[int, int], newlines: int) -> int:
    """Where the second of two characters is in the UTF-8 `data`, when the first is at `at`.

    Goes from newline to newline: counting those is several times faster than encoding all that lies between.
    """
    char_at, position = between
    while newlines:
        inside = data.count(b"\n", at, at + _STEP_BYTES)
        if inside < newlines:
            newlines -= inside
            at += _STEP_BYTES
            continue
        for _ in range(newlines):
            at = data.index(b"\n", at) + 1
        newlines = 0
        char_at = text.rindex("\n", char_at, position) + 1
    return at + len(text[char_at:position].encode())


# A private key whose end is missing, so that its beginning alone tells; only lines of base64 belong to it.
_UNENDED_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY-----\r?\n((?:[A-Za-z0-9+/=]{16,}\r?(?:\n|\Z))++)(?!-----END)"
)


class Numbered(NamedTuple):
    """Lines as they are shown, and a word on those that are not."""

    content: str
    note: str


class Veil:
    """One task's markers. A file that is shown and written back keeps its bytes, and no marker gets into a file."""

    def __init__(self, redactor: Redactor, *, is_on: bool = True) -> None:
        self._redactor = redactor
        self._is_on = is_on

    def hide(self, text: str) -> str:
        """`text` as it may be shown."""
        if not self._is_on:
            return text
        for unended in _UNENDED_KEY.finditer(text) if "PRIVATE KEY-----" in text else ():
            self._redactor.register(unended[1])
        return self._redactor.redact(text)

    def numbered(self, first_line: int, text: str, wanted: range) -> Numbered:
        """The `wanted` lines of `text`, whose first is `first_line`, with their numbers and secrets hidden.

        A secret of several lines takes up their numbers and stands where it begins; a page that begins inside one
        starts behind it.
        """
        shown, number, note = [], first_line, ""
        for line in self.hide(text).split("\n"):
            following = number + 1 + sum(self._original(found).count("\n") for found in MARKER.finditer(line))
            if number in wanted:
                shown.append(f"{number}|{line}")
            elif number < wanted.start < following:
                last = min(following, wanted.stop) - 1
                note = f"lines {wanted.start}-{last} belong to the secret that is shown at line {number}"
            number = following
        return Numbered("\n".join(shown), note)

    def reveal(self, text: str, current: str | None) -> str:
        """`text` as it is to be written into a file that holds `current`.

        Raises `ToolError` for a marker that stands for nothing known; one that the file itself holds is just text.
        """
        if not self._is_on or not MARKER.search(text):
            return text
        if current is not None:
            # What the file holds is known again, also after a restart; as it is shown, so with plain line ends.
            self._redactor.redact(current.replace("\r\n", "\n"))

        def original(found: re.Match[str]) -> str:
            is_text = current is not None and found.group() in current
            return found.group() if is_text else self._redactor.restore(found.group())

        try:
            return MARKER.sub(original, text)
        except UnknownMarker as error:
            raise ToolError(f"nothing was written: {error}") from error

    def _original(self, found: re.Match[str]) -> str:
        try:
            return self._redactor.restore(found.group())
        except UnknownMarker:
            return found.group()  # the file holds the marker as text
