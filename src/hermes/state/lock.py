"""A fair lock between processes, which dies with its owner.

SQLite's own wait is a sleep and a retry, so a busy writer starves the others. Here the waiters stand in a line: each
takes a number, holds a kernel lock on the byte of that number, and waits for the byte before it. The kernel drops
the locks of a process that dies, so the line moves on and no lock outlives its owner. The line only orders; what
excludes is a plain `flock` on the same file, taken by whoever is at its head.
"""

import errno
import fcntl
import os
import struct
from collections.abc import Callable
from pathlib import Path

from hermes.disk_trouble import reason_of
from hermes.errors import StoreError, StoreUnavailable

_COUNTER = struct.Struct("=q")
_FLOCK = struct.Struct("hhqqi4x")  # struct flock of 64-bit Linux
_ANY_BYTE = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
_UNLOCKED = struct.pack("h", fcntl.F_UNLCK)
_COUNTER_BYTE = 1 << 62  # the lock on this byte guards the counter that is stored at offset 0
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
