"""Where the server of a home listens, and who that is: a socket, a lock that one process holds, and a note of it.

All three are in a folder that only its owner may enter. The lock goes with its process, however that ends.
"""

import contextlib
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import DecodeError, Struct, json

from hermes.config import paths
from hermes.errors import UserError
from hermes.typed import from_json

LONGEST_PATH = 100  # bytes; the kernel takes 107 and a zero
_TRIES, _AGAIN_S = 10, 0.02  # whoever only looks whether a server lives has the lock for a moment


class ServerNote(Struct, frozen=True):
    """What a server writes down about itself."""

    pid: int
    version: str
    since: float


class ServeFolder:
    """The server's folder in a home."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "serve"
        self.socket_file = self.folder / "socket"
        self._lock_file = self.folder / "lock"
        self._note_file = self.folder / "server.json"

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Be the server of this home; `UserError` when there is one already."""
        paths.made(self.folder)
        os.chmod(self.folder, 0o700)  # noqa: PTH101 - it may be there from before
        fd = os.open(self._lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not _locked(fd):
                raise UserError(f"a server runs for this home already{self._named()}; see: hermes serve --status")
            try:
                yield
            finally:
                for file in (self.socket_file, self._note_file):
                    file.unlink(missing_ok=True)
        finally:
            os.close(fd)

    @property
    def is_held(self) -> bool:
        """Whether a server lives."""
        try:
            fd = os.open(self._lock_file, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False

    def write_note(self, note: ServerNote) -> None:
        paths.write_private(self._note_file, json.encode(note).decode())

    def note(self) -> ServerNote | None:
        """What the server has written down; it may be gone since."""
        try:
            return from_json(self._note_file.read_bytes(), ServerNote)
        except (OSError, DecodeError):
            return None

    def bound(self) -> socket.socket:
        """The socket to listen on, for whoever holds the place."""
        self.socket_file.unlink(missing_ok=True)
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with self._short_name() as name:
                made.bind(name)
            os.chmod(self.socket_file, 0o600)  # noqa: PTH101 - beside its folder, which says it already
        except BaseException:
            made.close()
            raise
        return made

    def connected(self) -> socket.socket:
        """A connection to the server; `OSError` when there is none."""
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with self._short_name() as name:
                made.connect(name)
        except BaseException:
            made.close()
            raise
        made.setblocking(False)
        return made

    @contextlib.contextmanager
    def _short_name(self) -> Iterator[str]:
        """A name of the socket that fits into an address, however deep the home is."""
        whole = str(self.socket_file)
        if len(os.fsencode(whole)) <= LONGEST_PATH:
            yield whole
            return
        if not Path("/proc/self/fd").is_dir():
            raise UserError(f"the path {whole!r} is too long for a socket; set HERMES_HOME to a shorter one")
        fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield f"/proc/self/fd/{fd}/{self.socket_file.name}"
        finally:
            os.close(fd)

    def _named(self) -> str:
        found = self.note()
        return f" (pid {found.pid})" if found is not None else ""


def _locked(fd: int) -> bool:
    for _ in range(_TRIES):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_AGAIN_S)
        else:
            return True
    return False
