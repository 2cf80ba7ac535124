"""A page of numbered lines out of a byte stream that is never held whole."""

import codecs
from dataclasses import dataclass
from typing import NamedTuple

from hermes.tools.files.encoding import UTF8, Encoding

MAX_LINE_CHARS = 2000
CUT_MARK = " … [line cut, {total} in all]"
# Longest UTF-8 character. A kept line needs this many bytes for each character that is shown.
_BYTES_PER_CHAR = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """Which lines are wanted: `limit` of them from line `offset`, counted from 1.

    After the page is full, the stream is read on to count lines, until `count_bytes` have been seen in all.
    With `fold`, a long line is shown as several numbered ones, so that paging reaches all of it.
    """

    offset: int = 1
    limit: int = 500
    count_bytes: int = 64 * 1024 * 1024
    fold: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LinePage:
    """The lines, without their ends; line n of the file is `lines[n - first_line]`."""

    first_line: int
    lines: tuple[str, ...]
    newlines: int  # newline characters seen; of the whole file when `is_counted`
    is_counted: bool
    has_more: bool
    encoding: Encoding


class _KeptLines(NamedTuple):
    head: bytes  # the start of the line, enough for what is shown of it
    length: int  # of the whole line, in bytes
    is_ended: bool  # by a newline, so that a carriage return before it is a part of the line's end


class Pager:
    """Takes a file's bytes in order, in chunks of any size, and keeps only what its page shows.

    Feed it until `is_satisfied` or the end of the file; then `finish`. Memory follows the page, not the file.
    """

    def __init__(self, request: PageRequest, encoding: Encoding = UTF8) -> None:
        self._request = request
        self._encoding = encoding
        # UTF-16 is turned into UTF-8 on the way in, so that a newline is one byte everywhere below.
        self._to_utf8 = codecs.getincrementaldecoder(encoding.codec)("replace") if encoding.is_wide else None
        self._codec = "utf-8" if encoding.is_wide else encoding.codec
        self._skip_bom = len(encoding.bom)
        self._line = 1
        self._kept: list[_KeptLines] = []
        self._open = bytearray()
        self._open_length = 0
        self._seen = 0
        self._newlines = 0
        self._fold_bytes = MAX_LINE_CHARS if request.fold else 0
        self._keep_bytes = MAX_LINE_CHARS * _BYTES_PER_CHAR

    @property
    def is_satisfied(self) -> bool:
        """Whether reading on would change nothing: the page is full and counting has reached its bound."""
        return self._is_full and self._seen >= self._request.count_bytes

    def feed(self, chunk: bytes) -> None:
        self._seen += len(chunk)
        if self._skip_bom:
            dropped = min(self._skip_bom, len(chunk))
            self._skip_bom -= dropped
            chunk = chunk[dropped:]
        if self._to_utf8 is not None:
            chunk = self._to_utf8.decode(chunk).encode("utf-8", "surrogatepass")
        if self._is_full:
            self._newlines += chunk.count(b"\n")
            self._open_length += len(chunk)
            return
        self._take(chunk)

    def finish(self, *, is_end: bool) -> LinePage:
        """The page. `is_end` says that all bytes were fed; a file that ends in a newline shows an empty last line."""
        has_more = self._is_full and (self._open_length > 0 or not is_end)
        if not self._is_full and self._line >= self._request.offset and is_end:
            self._close_line(is_ended=False)
        return LinePage(
            first_line=self._request.offset,
            lines=tuple(map(self._shown, self._kept)),
            newlines=self._newlines,
            is_counted=is_end,
            has_more=has_more,
            encoding=self._encoding,
        )

    @property
    def _is_full(self) -> bool:
        return len(self._kept) >= self._request.limit

    def _take(self, chunk: bytes) -> None:
        at = 0
        while at < len(chunk) and not self._is_full:
            if self._line < self._request.offset and not self._fold_bytes:
                at = self._skip_lines(chunk, at)
                continue
            newline = chunk.find(b"\n", at)
            end = len(chunk) if newline == -1 else newline
            at = self._extend(chunk, at, end)
            if at == newline:
                self._newlines += 1
                self._close_line(is_ended=True)
                at += 1
        rest = chunk[at:]
        self._newlines += rest.count(b"\n")
        self._open_length += len(rest)

    def _skip_lines(self, chunk: bytes, at: int) -> int:
        """Pass over lines before the page; whole chunks at the speed of counting."""
        missing = self._request.offset - self._line
        count = chunk.count(b"\n", at)
        if count < missing:
            self._newlines += count
            self._line += count
            return len(chunk)
        for _ in range(missing):
            at = chunk.index(b"\n", at) + 1
        self._newlines += missing
        self._line += missing
        return at

    def _extend(self, chunk: bytes, at: int, end: int) -> int:
        """Add to the open line; with folding, stop where it has its width."""
        if self._fold_bytes:
            if self._open_length >= self._fold_bytes and at < end:
                self._fold()
            end = min(end, at + self._fold_bytes - self._open_length)
        room = max(self._keep_bytes - len(self._open), 0)
        self._open += chunk[at : min(end, at + room)]
        self._open_length += end - at
        return end

    def _fold(self) -> None:
        """Close a part of a long line; a character cut in two goes whole to the next part."""
        split = _whole_characters(self._open, self._codec)
        rest = bytes(self._open[split:])
        del self._open[split:]
        self._open_length = split
        self._close_line(is_ended=False)
        self._open += rest
        self._open_length = len(rest)

    def _close_line(self, *, is_ended: bool) -> None:
        if self._line >= self._request.offset:
            self._kept.append(_KeptLines(bytes(self._open), self._open_length, is_ended))
        self._line += 1
        self._open.clear()
        self._open_length = 0

    def _shown(self, kept: _KeptLines) -> str:
        is_whole = kept.length == len(kept.head)
        text = self._decoded(kept.head.removesuffix(b"\r") if is_whole and kept.is_ended else kept.head)
        if is_whole and len(text) <= MAX_LINE_CHARS:
            return text
        total = f"{len(text)} characters" if is_whole else f"{kept.length} bytes"
        return text[:MAX_LINE_CHARS] + CUT_MARK.format(total=total)

    def _decoded(self, raw: bytes) -> str:
        try:
            return raw.decode(self._codec)
        except UnicodeDecodeError as error:
            if len(raw) == self._keep_bytes and error.start > len(raw) - _BYTES_PER_CHAR:
                return raw[: error.start].decode(self._codec)
            # Only the head of the file decided on the encoding; a stray byte further on is shown as Latin-1.
            return raw.decode("latin-1")


def _whole_characters(data: bytes | bytearray, codec: str) -> int:
    """How many of the bytes are whole characters."""
    if codec != "utf-8":
        return len(data)
    end = len(data)
    back = end - 1
    while back >= 0 and end - back < _BYTES_PER_CHAR and data[back] & 0xC0 == 0x80:
        back -= 1
    if back < 0 or data[back] < 0xC0:
        return end
    need = 2 if data[back] < 0xE0 else 3 if data[back] < 0xF0 else 4
    return end if end - back >= need else back
