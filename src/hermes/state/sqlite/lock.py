"""The lock file beside a state file: a fair lock between processes, and the seal of the file.

SQLite's own wait is a sleep and a retry, so a busy writer starves the others. Here the waiters stand in a line: each
takes a number, holds a kernel lock on the byte of that number, and waits for the byte before it. The kernel drops
the locks of a process that dies, so the line moves on and no lock outlives its owner. The line only orders; what
excludes is a plain `flock` on the same file, taken by whoever is at its head.

The seal tells whether the state file is as Hermes left it, without reading it. SQLite notices little of what a bad
disk, a broken copy or another program does to its file: a damaged index hides rows without a word. To look through
everything at each start would cost too much. So whoever writes to the file itself gives it a time that no later write
can leave it with, and notes that; a file with another time, size or number was touched by somebody else, or by one of
us who was killed, and is looked through before it is used.
"""

import errno
import fcntl
import os
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from hermes.disk_trouble import reason_of
from hermes.errors import StoreError, StoreUnavailable

_COUNTER = struct.Struct("=q")
_FLOCK = struct.Struct("hhqqi4x")  # struct flock of 64-bit Linux
_UNLOCKED = struct.pack("h", fcntl.F_UNLCK)
_COUNTER_BYTE = 1 << 62  # the lock on this byte guards the counter that is stored at offset 0
_FILE_BYTE = _COUNTER_BYTE + 1  # held from a look at the seal until it is set again
_ANY_BYTE = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, _FILE_BYTE, 0)  # of those who stand in line
_AT_ONCE = fcntl.LOCK_EX | fcntl.LOCK_NB
_SET, _WAIT, _GET = (getattr(fcntl, f"F_OFD_{name}", None) for name in ("SETLK", "SETLKW", "GETLK"))


class FairLock:
    """Held by one holder at a time, in the order of asking. One object is for one thread at a time."""

    def __init__(self, path: Path, flock: Callable[[int, int], None] = fcntl.flock) -> None:
        self.path = path
        self._flock = flock
        self._fd = -1
        self._number: int | None = None

    def open(self) -> None:
        """Open the lock file and make sure that locks exclude here; `StoreUnavailable` says why they do not."""
        try:
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreUnavailable(f"cannot open the lock file {str(self.path)!r}: {reason_of(error)}") from error
        try:
            self._check_exclusion()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Drop the lock, if held, and the file handle."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def acquire(self) -> None:
        """Wait for the turn, however long; others that asked before go first."""
        try:
            if self.try_acquire():
                return
            self._queue()
            self._flock(self._fd, fcntl.LOCK_EX)
        except OSError as error:
            self._leave_line()
            raise StoreError(f"cannot lock {str(self.path)!r}: {error.strerror}") from error

    def try_acquire(self) -> bool:
        """Take it if it is free and nobody stands in line."""
        try:
            if _GET is not None and fcntl.fcntl(self._fd, _GET, _ANY_BYTE)[:2] != _UNLOCKED:
                return False  # somebody stands in line
            return self._try(self._fd)
        except OSError as error:
            raise StoreError(f"cannot lock {str(self.path)!r}: {error.strerror}") from error

    def release(self) -> None:
        """Let the next one in."""
        self._flock(self._fd, fcntl.LOCK_UN)
        if self._number is not None:
            self._leave_line()

    def hold_file(self, *, waits: bool = True) -> bool:
        """Keep others from writing to the state file itself, apart from the line; False where one would have to wait.

        Whoever moves the log into the file does it without the lock. Two of them at once would each find the other's
        broken seal, and leave it broken for good (test_processes.py).
        """
        try:
            if (how := _WAIT if waits else _SET) is not None:
                self._byte(how, fcntl.F_WRLCK, _FILE_BYTE)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def let_file_go(self) -> None:
        if _SET is not None:
            self._byte(_SET, fcntl.F_UNLCK, _FILE_BYTE)

    def _check_exclusion(self) -> None:
        probe = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        try:
            self._flock(self._fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            excluded = not self._try(probe)
            self._flock(self._fd, fcntl.LOCK_UN)
        except BlockingIOError:
            return  # another process holds it: locks work
        except OSError as error:
            raise StoreUnavailable(
                f"the file system of {str(self.path.parent)!r} cannot lock files ({error.strerror}); "
                "put HERMES_HOME on a local disk"
            ) from error
        finally:
            os.close(probe)
        if not excluded:
            raise StoreUnavailable(
                f"file locks on {str(self.path.parent)!r} do not exclude anyone; put HERMES_HOME on a local disk"
            )

    def _try(self, handle: int) -> bool:
        try:
            self._flock(handle, _AT_ONCE)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            raise
        return True

    def _queue(self) -> None:
        if _SET is None or _WAIT is None:
            return  # no open-file locks on this system: flock alone orders the waiters
        self._byte(_WAIT, fcntl.F_WRLCK, _COUNTER_BYTE)
        try:
            stored = os.pread(self._fd, _COUNTER.size, 0)
            number = (_COUNTER.unpack(stored)[0] if len(stored) == _COUNTER.size else 0) + 1
            number = number if 0 < number < _COUNTER_BYTE - 1 else 1
            self._byte(_SET, fcntl.F_WRLCK, number)
            self._number = number
            os.pwrite(self._fd, _COUNTER.pack(number), 0)
        finally:
            self._byte(_SET, fcntl.F_UNLCK, _COUNTER_BYTE)
        self._byte(_WAIT, fcntl.F_WRLCK, number - 1)
        self._byte(_SET, fcntl.F_UNLCK, number - 1)

    def _leave_line(self) -> None:
        if self._number is not None and _SET is not None:
            number, self._number = self._number, None
            self._byte(_SET, fcntl.F_UNLCK, number)

    def _byte(self, command: int, kind: int, offset: int) -> None:
        fcntl.fcntl(self._fd, command, _FLOCK.pack(kind, os.SEEK_SET, offset, 1, 0))


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
