"""One call child, seen from the runtime: its output, its end, and how to stop it."""

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

from hermes.errors import ToolError

_READ_BYTES = 256 * 1024
_STDERR_KEPT = 64 * 1024


class StartFailed(ToolError):
    """The operating system would not start the program; `errno` says why."""

    def __init__(self, message: str, errno: int) -> None:
        super().__init__(message)
        self.errno = errno


class Pipes:
    """The runtime's ends of a child's streams; `close` closes what is still open."""

    def __init__(self, stdout: int, stderr: int | None, stdin: int | None) -> None:
        self.stdout, self.stderr, self.stdin = stdout, stderr, stdin
        for fd in (stdout, stderr, stdin):
            if fd is not None:
                os.set_blocking(fd, False)

    def close_stdin(self) -> None:
        if self.stdin is not None:
            os.close(self.stdin)
            self.stdin = None

    def close(self) -> None:
        self.close_stdin()
        if self.stdout >= 0:
            os.close(self.stdout)
            self.stdout = -1
        if self.stderr is not None:
            os.close(self.stderr)
            self.stderr = None


class CallChild:
    """A running call child. Belongs to the loop that spawned it; ends with its call and with the runtime."""

    def __init__(self, line: socket.socket, pipes: Pipes, on_gone: "Callable[[CallChild], None]") -> None:
        self._line = line
        self._pipes = pipes
        self._on_gone = on_gone
        self._loop = asyncio.get_running_loop()
        self._started: asyncio.Future[int] = self._loop.create_future()
        self._exited: asyncio.Future[int] = self._loop.create_future()
        self._gone: asyncio.Future[list[int]] = self._loop.create_future()
        self._stderr_tail = bytearray()
        self._stderr_listener: Callable[[bytes], None] | None = None
        self.excess = ""  # what it had too much of, when the keeper ended it for that
        line.setblocking(False)
        self._loop.add_reader(line.fileno(), self._heard)
        if pipes.stderr is not None:
            self._loop.add_reader(pipes.stderr, self._keep_stderr, pipes.stderr)

    @property
    def pid(self) -> int:
        return self._started.result()

    @property
    def is_gone(self) -> bool:
        """Whether the child and all that descended from it have ended."""
        return self._gone.done()

    async def started(self) -> "CallChild":
        """Wait for the start; raises `StartFailed`."""
        await asyncio.shield(self._started)
        return self

    async def output(self) -> AsyncIterator[bytes]:
        """Chunks as they come, until nobody can write any more. A reader that never waits still lets others run."""
        fd = self._pipes.stdout
        while fd >= 0 and self._pipes.stdout >= 0:
            try:
                data = os.read(fd, _READ_BYTES)
            except BlockingIOError:
                # A descriptor can leave the tree (handed to a daemon over a socket) and keep the pipe open for ever:
                # the end of the child ends its output, too.
                if self._gone.done():
                    return
                await self._readable(fd)
                continue
            if not data:
                return
            yield data
            await asyncio.sleep(0)

    async def wait(self) -> int:
        """The exit code, negative for a signal, once nothing of the child is left; `StartFailed` if it never ran."""
        await asyncio.shield(self._gone)
        self._started.result()
        return self._exited.result()

    async def exited(self) -> int:
        """The exit code as soon as the program itself has ended; descendants may still be on their way out."""
        return await asyncio.shield(self._exited)

    async def stop(self, grace_s: float = 1.0) -> None:
        """TERM, grace, KILL for the child and everything that descends from it; returns when all of it is gone."""
        self.request_stop(grace_s)
        await asyncio.shield(self._gone)

    def request_stop(self, grace_s: float = 1.0) -> None:
        """`stop` without waiting. The keeper goes through with it whatever happens here."""
        with contextlib.suppress(OSError):
            self._line.send(str(grace_s).encode())

    async def write(self, data: bytes) -> None:
        """Send to the child's stdin (`keep_stdin`); raises `BrokenPipeError` when nobody reads it any more."""
        view = memoryview(data)
        while view:
            fd = self._pipes.stdin
            if fd is None:
                raise BrokenPipeError("the child's stdin is closed")
            try:
                view = view[os.write(fd, view) :]
            except BlockingIOError:
                await self._writable(fd)

    def close_stdin(self) -> None:
        """Let the child read an end of file."""
        self._pipes.close_stdin()

    def stderr_tail(self) -> bytes:
        """The last of what the child wrote to stderr, when that is kept apart from its output."""
        return bytes(self._stderr_tail)

    def hear_stderr(self, listener: Callable[[bytes], None]) -> None:
        """Have `listener` called with what comes on stderr from now on, and with nothing at its end."""
        self._stderr_listener = listener

    def release(self) -> None:
        """Close every descriptor. What still runs is stopped by the keeper, which sees the line end."""
        if self._line.fileno() >= 0:
            self._loop.remove_reader(self._line.fileno())
            self._line.close()
        if self._pipes.stderr is not None:
            self._loop.remove_reader(self._pipes.stderr)
        if self._pipes.stdout >= 0:
            self._loop.remove_reader(self._pipes.stdout)
        self._pipes.close()
        self._settle([])
        if not self._started.cancelled():
            self._started.exception()  # looked at, so that nobody is told of a failure that no longer matters
        self._on_gone(self)

    def hang_up(self) -> None:
        """End the line from any thread: the keeper stops the child, and the child's own loop notices."""
        with contextlib.suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)

    def _heard(self) -> None:
        while True:
            try:
                data = self._line.recv(4096)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._loop.remove_reader(self._line.fileno())
                self._settle([])
                return
            self._note(json.loads(data))

    def _note(self, facts: dict[str, Any]) -> None:
        if "error" in facts:
            name = f": {facts['file']}" if facts["file"] else ""
            error = StartFailed(f"could not start the program: {facts['text']}{name}", int(facts["error"]))
            self._started.set_exception(error)
        if "pid" in facts and not self._started.done():
            self._started.set_result(int(facts["pid"]))
        if "excess" in facts:
            self.excess = str(facts["excess"])
        if "exit" in facts and not self._exited.done():
            self._exited.set_result(int(facts["exit"]))
        if "gone" in facts:
            self._settle(facts["gone"])

    def _settle(self, left: list[int]) -> None:
        """No more news will come."""
        if not self._started.done():
            self._started.set_exception(StartFailed("the keeper ended before it could start the program", 0))
        if not self._exited.done():
            self._exited.set_result(-9)  # its end was not seen: it was killed with everything below it
        if not self._gone.done():
            self._gone.set_result(left)

    def _keep_stderr(self, fd: int) -> None:
        try:
            data = os.read(fd, _READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            self._loop.remove_reader(fd)
        if self._stderr_listener is not None:
            self._stderr_listener(data)
        self._stderr_tail += data
        del self._stderr_tail[:-_STDERR_KEPT]

    async def _readable(self, fd: int) -> None:
        """Wait until there may be bytes, or the child is gone."""
        ready = self._loop.create_future()
        wake = _Wake(ready)
        self._loop.add_reader(fd, wake)
        self._gone.add_done_callback(wake)
        try:
            await ready
        finally:
            self._gone.remove_done_callback(wake)
            if self._pipes.stdout >= 0:
                self._loop.remove_reader(fd)

    async def _writable(self, fd: int) -> None:
        ready = self._loop.create_future()
        self._loop.add_writer(fd, _Wake(ready))
        try:
            await ready
        finally:
            self._loop.remove_writer(fd)


class _Wake:
    """Set a future once, whichever of several callbacks comes first."""

    def __init__(self, ready: "asyncio.Future[None]") -> None:
        self._ready = ready

    def __call__(self, *_: object) -> None:
        if not self._ready.done():
            self._ready.set_result(None)
