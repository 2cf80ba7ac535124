"""The pages that SQLite's write-ahead log holds: what was committed and not yet moved into the file."""

import struct
from pathlib import Path

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
