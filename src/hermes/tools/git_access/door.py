"""The runtime's side of a named pipe at which programs inside the border ask for something done outside.

Whoever is inside can write anything into the folder of the pipes, so nothing in it is believed: names have one form,
files are opened by descriptor without following links, must be what they should be, and are read up to a limit.
"""

import asyncio
import contextlib
import errno
import logging
import os
import re
import stat
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from hermes.tools.git_access.inside_programs import DOOR, NAME

_MOST_VISITORS = 32
_MOST_BYTES = 64 * 1024
_LINE = re.compile(NAME.encode())
_WAYS = {"end": os.O_RDWR, "in": os.O_RDONLY, "out": os.O_WRONLY, "err": os.O_WRONLY}
log = logging.getLogger(__name__)


class Visit(NamedTuple):
    """One request: its words, and the pipes to answer with, which are closed when the answer is over."""

    words: tuple[str, ...]
    stdin: int
    stdout: int
    stderr: int


Answer = Callable[[Visit], Awaitable[int]]
"""What to do for a visitor; the number is the exit code of its program."""


class GitDoor:
    """Listens at the pipe of one session, on whichever loop the session's commands run."""

    def __init__(self, folder: Path, answer: Answer) -> None:
        self._answer = answer
        self._at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        os.mkfifo(DOOR, 0o600, dir_fd=self._at)
        # Open for both directions: it never ends, and nobody who rings waits for us.
        self._bell = os.open(DOOR, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._at)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._heard = b""
        self._lock = threading.Lock()  # guards `_visits`, and that no descriptor is used after its end
        self._visits: set[asyncio.Task[None]] = set()

    def attend(self) -> None:
        """Answer on the running loop from now on."""
        loop = asyncio.get_running_loop()
        if loop is self._loop or self._bell < 0:
            return
        self._leave()
        loop.add_reader(self._bell, self._ring)
        self._loop = loop

    def close(self) -> None:
        """Answer nobody any more; what is under way is stopped."""
        self._leave()
        with self._lock:
            for visit in self._visits:
                visit.get_loop().call_soon_threadsafe(visit.cancel)
            for fd in (self._bell, self._at):
                if fd >= 0:
                    os.close(fd)
            self._bell = self._at = -1

    def _leave(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._bell)
        self._loop = None

    def _ring(self) -> None:
        try:
            self._heard += os.read(self._bell, 4096)
        except BlockingIOError:
            return
        *lines, self._heard = self._heard.split(b"\n")
        self._heard = self._heard[-64:]
        for line in lines:
            if _LINE.fullmatch(line) and len(self._visits) < _MOST_VISITORS:
                # A thread with a loop of its own: a visit outlasts the command whose loop heard the bell.
                threading.Thread(
                    target=self._visited, args=(line.decode(),), name="hermes-git-door", daemon=True
                ).start()

    def _visited(self, name: str) -> None:
        async def visit() -> None:
            task = asyncio.current_task()
            assert task is not None
            with self._lock:
                self._visits.add(task)
            try:
                await self._receive(name)
            finally:
                with self._lock:
                    self._visits.discard(task)

        with contextlib.suppress(asyncio.CancelledError):  # the session is over
            asyncio.run(visit())

    async def _receive(self, name: str) -> None:
        opened: list[int] = []
        try:
            with self._lock:
                words = self._words(f"{name}.ask")
                for part, way in _WAYS.items():
                    opened.append(self._pipe(f"{name}.{part}", way))
        except (OSError, UnicodeError) as error:
            log.info("a visitor at the git door could not be heard: %s", error)
            for fd in opened:
                os.close(fd)
            return
        end, *ends = opened
        code = 255
        try:
            _say(end, "go")
            code = await self._answer(Visit(words, *ends))
        except Exception:  # the border to what is asked for: a failure of one visit ends that visit
            log.exception("git's request could not be answered")
        finally:
            for fd in ends:
                os.close(fd)
            _say(end, str(code))
            os.close(end)

    def _words(self, name: str) -> tuple[str, ...]:
        fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._at)
        with os.fdopen(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise OSError(errno.EINVAL, "no regular file")
            text = file.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise OSError(errno.E2BIG, "a request that is too long")
        return tuple(text.decode().split("\0")[:-1])

    def _pipe(self, name: str, way: int) -> int:
        fd = os.open(name, way | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._at)
        about = os.fstat(fd)
        if not stat.S_ISFIFO(about.st_mode) or about.st_uid != os.geteuid():
            os.close(fd)
            raise OSError(errno.EINVAL, "no pipe of this user")
        return fd


def _say(fd: int, word: str) -> None:
    with contextlib.suppress(OSError):  # the visitor has gone, or reads nothing
        os.write(fd, f"{word}\n".encode())
