"""The pages of a damaged SQLite file, read without SQLite: no header, schema or tree has to be whole.

What was committed and not yet moved into the file stands in its log, and is laid over it. Only trees of tables are
looked at. A leaf holds whole rows, or their beginning and a chain of overflow pages; all rows of a leaf are of one
table.
"""

import mmap
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from msgspec import Struct

from hermes.state.sqlite.row_shapes import Garbled, text_or_garbled

LEAF, INTERIOR = 0x0D, 0x05
HEADER_BYTES = 100  # of the file, on its first page
PAGE_SIZES = (4096, 1024, 2048, 8192, 16384, 32768, 65536, 512)
_SAMPLE = 2000  # pages that are asked whether they are pages
_MAX_COLUMNS = 2000
_SIZES = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8, 8: 0, 9: 0}


class NoRow(Exception):
    """These bytes are no row."""


class PageRow(Struct, gc=False):
    """A row as it stands on its page; what of it cannot be read is `Garbled`."""

    row_id: int
    values: list[Any]
    is_whole: bool  # its parts add up


class Image:
    """The pages of the file at `path`, with those of its log laid over them; nobody writes to it meanwhile."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        length = path.stat().st_size
        self._data: bytes | mmap.mmap = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) if length else b""
        self._log = LogPages(path.with_name(path.name + "-wal"))
        self.size = self._log.size or _page_size(self._data)
        self.count = max(-(-length // self.size), self._log.count)  # a page that was cut off as well
        self.lost_cells = 0  # that are there and could not be read

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if isinstance(self._data, mmap.mmap):
            self._data.close()
        self._file.close()

    def page(self, number: int) -> bytes:
        """Page `number`, counted from 1; shorter where the file was cut off, empty when there is none."""
        if number in self._log.pages:
            return self._log.pages[number]
        return self._data[(number - 1) * self.size : number * self.size] if number > 0 else b""

    def kind(self, number: int) -> int:
        """The kind of a page, by its first byte."""
        page = self.page(number)
        start = _start(number, page)
        return page[start] if len(page) > start else 0

    def children(self, number: int) -> list[int]:
        """The pages below an interior page of a table."""
        page = self.page(number)
        start = _start(number, page)
        found = [_number(page, offset) for offset in _cells(page, start, 12)]
        return [*found, _number(page, start + 8)]

    def rows(self, number: int) -> list[PageRow]:
        """The rows of a leaf, those that can be read at all."""
        page, found = self.page(number), []
        for offset in _cells(page, _start(number, page), 8):
            try:
                found.append(self._row(page, offset))
            except (NoRow, IndexError):
                self.lost_cells += 1  # one bad cell says nothing about its neighbours
        return found

    def free_pages(self) -> frozenset[int]:
        """The pages that hold nothing any more; none when their list cannot be trusted."""
        head = self.page(1)
        trunk, total = _number(head, 32), _number(head, 36)
        free: set[int] = set()
        while trunk and trunk not in free and 1 < trunk <= self.count:
            page = self.page(trunk)
            used = min(_number(page, 4), self.size // 4 - 2)
            free |= {trunk, *(_number(page, 8 + 4 * place) for place in range(used))}
            trunk = _number(page, 0)
        return frozenset(free) if len(free) == total else frozenset()

    def _row(self, page: bytes, offset: int) -> PageRow:
        length, at = _varint(page, offset)
        row_id, at = _varint(page, at)
        payload = self._payload(page, at, length)
        values, used = _columns(payload)
        if row_id >= 1 << 63:
            row_id -= 1 << 64
        return PageRow(row_id, values, used == length == len(payload))

    def _payload(self, page: bytes, at: int, length: int) -> bytes:
        """The bytes of a row, as many as can be found."""
        size = self.size
        if not 0 < length < (self.count + 1) * size:
            raise NoRow
        local = _local(length, size)
        if local == length:
            return page[at : at + length]
        parts, missing = [page[at : at + local]], length - local
        number, seen = _number(page, at + local), {0}
        while missing > 0 and number not in seen:
            seen.add(number)
            further = self.page(number)
            parts.append(further[4 : 4 + missing])
            missing -= size - 4
            number = _number(further, 0)
        return b"".join(parts)


def _page_size(data: "bytes | mmap.mmap") -> int:
    """The size by which most of the file looks like pages; that of the header, where it can be, before others."""
    told = int.from_bytes(data[16:18], "big")
    told = 65536 if told == 1 else told
    sizes = sorted(PAGE_SIZES, key=lambda size: size != told)
    return max(sizes, key=lambda size: _likeness(data, size))


def _likeness(data: "bytes | mmap.mmap", size: int) -> int:
    """How many pages of this size are leaves with a row that ends where the page does: the first that was written."""
    starts = range(size, min(len(data) - size + 1, _SAMPLE * size), size)
    return sum(data[start] == LEAF and _is_leaf(data[start : start + size]) for start in starts)


def _is_leaf(page: bytes) -> bool:
    cells = _cells(page, 0, 8)
    try:
        length, at = _varint(page, max(cells))
        _, at = _varint(page, at)
    except (ValueError, NoRow):  # no cells, or none that is one
        return False
    local = _local(length, len(page))
    return at + local + (4 if local < length else 0) == len(page)


def _local(length: int, size: int) -> int:
    """How many of a row's bytes stand on its leaf."""
    most, least = size - 35, (size - 12) * 32 // 255 - 23
    if length <= most:
        return length
    local = least + (length - least) % (size - 4)
    return local if local <= most else least


def _start(number: int, page: bytes) -> int:
    """Where the tree begins on a page; one without the file's header may have taken the place of the first."""
    return HEADER_BYTES if number == 1 and page[:1] not in (b"\x0d", b"\x05") else 0


def _cells(page: bytes, start: int, header: int) -> list[int]:
    """Where the cells of a page begin."""
    count = int.from_bytes(page[start + 3 : start + 5], "big")
    first, last = start + header, len(page) - 1
    offsets = [int.from_bytes(page[at : at + 2], "big") for at in range(first, min(first + 2 * count, last), 2)]
    return [offset for offset in offsets if first <= offset < last]


def _columns(payload: bytes) -> tuple[list[Any], int]:
    """The values of a row, and how many bytes they say they have."""
    end, at = _varint(payload, 0)
    if not 1 < end <= len(payload):
        raise NoRow
    kinds: list[int] = []
    while at < end and len(kinds) < _MAX_COLUMNS:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    at, values = end, []
    for kind in kinds:
        size = _SIZES.get(kind, (kind - 12) // 2 if kind >= 12 else 0)
        values.append(_value(kind, payload[at : at + size], size))
        at += size
    return values, at


def _value(kind: int, raw: bytes, size: int) -> Any:
    if kind in (10, 11) or len(raw) < size:
        return Garbled(raw)
    if kind < 10:
        if kind == 7:
            return struct.unpack(">d", raw)[0]
        return (None, 0, 1)[(0, 8, 9).index(kind)] if kind in (0, 8, 9) else int.from_bytes(raw, "big", signed=True)
    return text_or_garbled(raw) if kind % 2 else raw


def _number(page: bytes, at: int) -> int:
    return int.from_bytes(page[at : at + 4], "big")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    with suppress(IndexError):
        for place in range(8):
            byte = data[at + place]
            value = (value << 7) | (byte & 0x7F)
            if byte < 0x80:
                return value, at + place + 1
        return (value << 8) | data[at + 8], at + 9
    raise NoRow


_HEADER = struct.Struct(">8I")  # magic, version, page size, checkpoint, two salts, two sums
_FRAME = struct.Struct(">6I")  # page, size of the file after a commit or 0, two salts, two sums
_MAGIC = 0x377F0682  # with the lowest bit set, sums are over big-endian words


class LogPages:
    """The newest committed image of each page in the log at `path`, as SQLite would take them.

    `size` is the size of a page, `count` that of the file in pages; both 0 without a usable log. Sums run from frame
    to frame, so what stands behind a damaged one cannot be told from an older log and is left out.
    """

    def __init__(self, path: Path) -> None:
        self.size = self.count = 0
        self.pages: dict[int, bytes] = {}
        data = path.read_bytes() if path.exists() else b""
        if len(data) < _HEADER.size:
            return
        magic, _, size, _, *rest = _HEADER.unpack_from(data)
        words = ">" if magic & 1 else "<"
        if magic & ~1 != _MAGIC or _sums(data[:24], words, (0, 0)) != (rest[2], rest[3]):
            return
        self.size = 65536 if size == 1 else size
        self._read(data, (rest[0], rest[1]), (rest[2], rest[3]), words)

    def _read(self, data: bytes, salts: tuple[int, int], sums: tuple[int, int], words: str) -> None:
        waiting: dict[int, bytes] = {}
        for at in range(_HEADER.size, len(data) - _FRAME.size - self.size + 1, _FRAME.size + self.size):
            number, count, salt1, salt2, *told = _FRAME.unpack_from(data, at)
            page = data[at + _FRAME.size : at + _FRAME.size + self.size]
            sums = _sums(page, words, _sums(data[at : at + 8], words, sums))
            if (salt1, salt2) != salts or sums != (told[0], told[1]):
                return
            waiting[number] = page
            if count:
                self.pages |= waiting
                self.count = count
                waiting.clear()


def _sums(data: bytes, words: str, sums: tuple[int, int]) -> tuple[int, int]:
    first, second = sums
    numbers = struct.unpack(f"{words}{len(data) // 4}I", data)
    for number, other in zip(numbers[::2], numbers[1::2], strict=True):
        first = (first + number + second) & 0xFFFFFFFF
        second = (second + other + first) & 0xFFFFFFFF
    return first, second
