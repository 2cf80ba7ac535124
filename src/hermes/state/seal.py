"""Whether a state file is as Hermes left it: told by a mark in the lock file beside it, without reading the file.

SQLite notices little of what a bad disk, a broken copy or another program does to its file: a damaged index hides rows
without a word. To look through everything at each start would cost too much. So whoever writes to the file itself gives
it a time that no later write can leave it with, and notes that; a file with another time, size or number was touched
by somebody else, or by one of us who was killed, and is looked through before it is used.
"""

import os
import struct
import time
from contextlib import suppress
from pathlib import Path

OFFSET = 64  # in the lock file, behind the counter of the line
_MARK = struct.Struct("<8sQQQ?")  # name, then number, size and time of the file, and whether its log belongs to it
_NAME = b"hermes-1"


class Seal:
    """The mark for the file at `path`, in the lock file beside it."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._lock = f"{path}-lock"
        self._log = f"{path}-wal"

    def is_unbroken(self) -> bool:
        """Whether nobody but us has touched the file since it was sealed."""
        told = self._told()
        if told is None:
            return False
        try:
            stat = os.stat(self._path)  # noqa: PTH116 - each checkpoint pays it
        except OSError:
            return False
        return told[:3] == (stat.st_ino, stat.st_size, stat.st_mtime_ns) and (not told[3] or _size(self._log) > 0)

    def was_set(self) -> bool:
        """Whether there was a file with something in it."""
        told = self._told()
        return _size(self._log) > 0 if told is None else told[1] > 0

    def set(self) -> None:
        """Note the file as it is now. Without rights to do so it counts as touched, and is looked through each time."""
        with suppress(OSError):
            # Kernels date writes by their ticks, so a write right now could leave the very same time; the last digits
            # of this one are chance.
            now = time.time_ns() // 1_000_000 * 1_000_000 + int.from_bytes(os.urandom(3), "big") % 1_000_000
            os.utime(self._path, ns=(now, now))
            stat = os.stat(self._path)  # noqa: PTH116 - each checkpoint pays it
            mark = _MARK.pack(_NAME, stat.st_ino, stat.st_size, stat.st_mtime_ns, _size(self._log) > 0)
            handle = os.open(self._lock, os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.pwrite(handle, mark, OFFSET)
            finally:
                os.close(handle)

    def _told(self) -> tuple[int, int, int, bool] | None:
        try:
            handle = os.open(self._lock, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            mark = os.pread(handle, _MARK.size, OFFSET)
        finally:
            os.close(handle)
        if len(mark) < _MARK.size:
            return None
        name, number, size, changed, with_log = _MARK.unpack(mark)
        return (number, size, changed, with_log) if name == _NAME else None


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - each checkpoint pays it
    except OSError:
        return 0
