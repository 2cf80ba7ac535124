"""Rows read straight from the pages of a damaged SQLite file, without its header, schema or tree.

Only leaves of tables are looked at: each holds whole rows, or their beginning and a chain of overflow pages. All rows
of a leaf are of one table; which one is for the caller to tell.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LEAF = 0x0D
DEFAULT_PAGE_SIZE = 4096
_SIZES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8}


class Damaged(Exception):
    """These bytes are no row."""


def leaves_of(path: Path) -> Iterator[list[tuple[int, list[Any]]]]:
    """The rows of each leaf, as (row id, columns), that can still be read. The file is not open anywhere else."""
    data = path.read_bytes()
    size = _page_size(data)
    for start in range(0, len(data) - size + 1, size):
        header = start + (100 if start == 0 else 0)
        if data[header] == LEAF:
            yield list(_leaf(data, start, header, size))


def _page_size(data: bytes) -> int:
    if data[:16] == b"SQLite format 3\0":
        size = int.from_bytes(data[16:18], "big")
        size = 65536 if size == 1 else size
        if size >= 512 and size & (size - 1) == 0:
            return size
    return DEFAULT_PAGE_SIZE


def _leaf(data: bytes, start: int, header: int, size: int) -> Iterator[tuple[int, list[Any]]]:
    count = int.from_bytes(data[header + 3 : header + 5], "big")
    for number in range(min(count, size // 4)):
        at = header + 8 + 2 * number
        offset = int.from_bytes(data[at : at + 2], "big")
        if not 8 <= offset < size - 3:
            continue
        try:
            length, at = _varint(data, start + offset)
            row_id, at = _varint(data, at)
            payload = _payload(data, at, length, size)
            yield row_id, _columns(payload)
        except (Damaged, IndexError, struct.error, UnicodeDecodeError):
            continue  # one bad cell says nothing about its neighbours


def _payload(data: bytes, at: int, length: int, size: int) -> bytes:
    if not 0 < length < len(data):
        raise Damaged
    most, least = size - 35, (size - 12) * 32 // 255 - 23
    if length <= most:
        return data[at : at + length]
    local = least + (length - least) % (size - 4)
    local = local if local <= most else least
    parts, missing = [data[at : at + local]], length - local
    page = int.from_bytes(data[at + local : at + local + 4], "big")
    while missing > 0:
        begin = (page - 1) * size
        if page <= 1 or begin + size > len(data):
            raise Damaged
        parts.append(data[begin + 4 : begin + 4 + min(missing, size - 4)])
        missing -= size - 4
        page = int.from_bytes(data[begin : begin + 4], "big")
    return b"".join(parts)


def _columns(payload: bytes) -> list[Any]:
    end, at = _varint(payload, 0)
    if not 1 < end <= len(payload):
        raise Damaged
    kinds = []
    while at < end:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    values: list[Any] = []
    for kind in kinds:
        value, at = _value(payload, kind, at)
        values.append(value)
    if at != len(payload):
        raise Damaged
    return values


def _value(payload: bytes, kind: int, at: int) -> tuple[Any, int]:
    if kind in (0, 8, 9):
        return (None, 0, 1)[(0, 8, 9).index(kind)], at
    if kind in _SIZES:
        end = at + _SIZES[kind]
        raw = payload[at:end]
        return (struct.unpack(">d", raw)[0] if kind == 7 else int.from_bytes(raw, "big", signed=True)), end
    if kind < 12:
        raise Damaged
    end = at + (kind - 12) // 2
    if end > len(payload):
        raise Damaged
    raw = payload[at:end]
    return (raw.decode() if kind % 2 else raw), end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for number in range(9):
        byte = data[at + number]
        if number == 8:
            return (value << 8) | byte, at + 9
        value = (value << 7) | (byte & 0x7F)
        if byte < 0x80:
            return value, at + number + 1
    raise Damaged
