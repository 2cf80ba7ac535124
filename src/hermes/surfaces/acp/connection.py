"""The two ends of the protocol: lines in, frames out, and what the editor is asked.

stdout belongs to the protocol from the first byte on: its descriptor is moved out of reach at the start, and whatever
else writes to stdout, a library, a plugin or a child, reaches stderr instead.
"""

import asyncio
import contextlib
import logging
import os
import queue
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias

from msgspec import DecodeError, Struct, json

from hermes.host.wire.frames import (
    BAD_PARAMS,
    MOST_LINE_BYTES,
    NO_METHOD,
    NOT_A_REQUEST,
    NOT_JSON,
    WireError,
    WireRequest,
    encode_error,
    encode_request,
    encode_result,
    read_request,
)
from hermes.types import JsonObject

INTERNAL = -32603
LAST_WORDS_S = 2.0  # for frames that are still to be read when all is over
MOST_BEHIND_BYTES = 64 << 20  # of frames that an editor does not read; then it counts as gone
MOST_REQUESTS = 256  # under way at once; one more is refused, since who stops reading hears no answer and no cancel
log = logging.getLogger(__name__)
Handler: TypeAlias = Callable[[WireRequest], Awaitable[Any]]


class EditorGone(Exception):
    """The other end has closed, or does not read any more."""


class EditorPipes(Struct, frozen=True):
    """Where lines come from, and where frames go."""

    lines: AsyncIterator[bytes]
    write: Callable[[bytes], None]  # blocking; called in a thread of its own


def process_pipes() -> tuple[int, int]:
    """Take stdin and stdout for the protocol alone; the two descriptors. What is printed from now on goes to stderr."""
    into, out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return into, out


async def lines_of(fd: int) -> AsyncIterator[bytes]:
    """The lines that arrive, each at most `MOST_LINE_BYTES` long; a longer one is an empty `b"\\0"` in its place.

    Read in a thread: a descriptor may be a file, which no loop can wait for.
    """
    loop, inbox = asyncio.get_running_loop(), asyncio.Queue[bytes | None](64)

    def put(line: bytes | None) -> None:
        asyncio.run_coroutine_threadsafe(inbox.put(line), loop).result()

    def read() -> None:
        held, is_too_long = bytearray(), False
        try:
            while data := os.read(fd, 1 << 16):
                *whole, rest = data.split(b"\n")
                for line in whole:
                    put(b"\0" if is_too_long else bytes(held + line))
                    held.clear()
                    is_too_long = False
                held += rest
                if len(held) > MOST_LINE_BYTES:
                    held.clear()
                    is_too_long = True
            if held:
                put(bytes(held))
            put(None)
        except (OSError, RuntimeError):  # the descriptor or the loop is closed: nobody listens any more
            log.info("stdin is no longer read")

    threading.Thread(target=read, name="acp-stdin", daemon=True).start()
    while (line := await inbox.get()) is not None:
        yield line


class EditorConnection:
    """One editor. `run` returns when it has gone; every request it sent has its reply by then, or nobody to read it."""

    def __init__(self, pipes: EditorPipes) -> None:
        self._pipes = pipes
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._number = 0
        self._frames: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._put_bytes = self._written_bytes = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._reading: asyncio.Timeout | None = None
        self.is_gone = False

    async def run(self, handle: Handler) -> None:
        """Serve requests with `handle`, each in a task of its own, until the other end closes."""
        written = asyncio.Event()
        # A thread that nothing waits for at the end: an editor that does not read must not keep us.
        threading.Thread(
            target=self._write, args=(asyncio.get_running_loop(), written), name="acp-stdout", daemon=True
        ).start()
        try:
            async with asyncio.TaskGroup() as group:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(None) as self._reading:
                        async for line in self._pipes.lines:
                            if line.strip():
                                self._take(line, handle, group)
                self._reading = None
                self._left()
                for task in self._tasks:
                    task.cancel()
        finally:
            self._frames.put(None)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_WORDS_S):
                    await written.wait()

    def notify(self, method: str, params: Any) -> None:
        """Tell something; nobody waits."""
        self._put(json.encode({"jsonrpc": "2.0", "method": method, "params": params}) + b"\n")

    async def ask(self, method: str, params: Any, timeout_s: float | None) -> Any:
        """Ask the editor; `WireError` when it refuses, `EditorGone` when it cannot answer, `TimeoutError`."""
        if self.is_gone:
            raise EditorGone
        self._number += 1
        number = self._number
        waits: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._asked[number] = waits
        try:
            self._put(encode_request(number, method, params))
            async with asyncio.timeout(timeout_s):
                return await waits
        finally:
            self._asked.pop(number, None)

    # -- lines -------------------------------------------------------------------------------------------------------

    def _take(self, line: bytes, handle: Handler, group: asyncio.TaskGroup) -> None:
        if line == b"\0":
            most = MOST_LINE_BYTES >> 20
            self._put(encode_error(None, WireError(NOT_JSON, f"this line is longer than {most} MB")))
            return
        try:
            reply = _reply_in(line)
            if reply is not None:
                self._answered(reply)
                return
            request = read_request(line)
        except WireError as error:
            request_id = (error.data or {}).get("id")
            self._put(encode_error(request_id, WireError(error.code, error.message)))
            return
        if len(self._tasks) >= (MOST_REQUESTS if request.wants_reply else 2 * MOST_REQUESTS):
            busy = f"{MOST_REQUESTS} requests are under way; wait until one is answered"
            log.warning("%s is not served: %s", request.method, busy)
            self._refuse(request, WireError(INTERNAL, busy))
            return
        task = group.create_task(self._serve(request, handle), name=request.method)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, request: WireRequest, handle: Handler) -> None:
        try:
            result = await handle(request)
        except WireError as error:
            self._refuse(request, error)
        except EditorGone:
            return
        except Exception:  # the border: a fault in one request must not end the others
            log.exception("%s failed", request.method)
            self._refuse(request, WireError(INTERNAL, f"{request.method} failed inside Hermes; see: hermes logs"))
        else:
            if request.wants_reply:
                self._put(encode_result(_id(request), result))

    def _refuse(self, request: WireRequest, error: WireError) -> None:
        if request.wants_reply:
            from hermes.host.command_word import as_typed  # only when something is wrong

            self._put(
                encode_error(_id(request), WireError(error.code, as_typed(error.message, os.environ), error.data))
            )

    def _answered(self, reply: JsonObject) -> None:
        waits = self._asked.get(reply["id"]) if isinstance(reply.get("id"), int) else None
        if waits is None or waits.done():
            return  # answered late, or never asked
        if "result" in reply:
            waits.set_result(reply["result"])
        else:
            told = reply.get("error")
            message = str(told.get("message", "")) if isinstance(told, dict) else ""
            waits.set_exception(WireError(NOT_A_REQUEST, message or "the editor refused"))

    def _left(self) -> None:
        if self._reading is not None and not self.is_gone:
            self._reading.reschedule(0.0)  # what it may still say is not waited for: who hears no answer is gone
        self.is_gone = True
        for waits in self._asked.values():
            if not waits.done():
                waits.set_exception(EditorGone())

    # -- frames ------------------------------------------------------------------------------------------------------

    def _put(self, frame: bytes) -> None:
        if self.is_gone:
            return
        self._put_bytes += len(frame)
        if self._put_bytes - self._written_bytes > MOST_BEHIND_BYTES:
            log.warning("the editor has not read %s MB; it counts as gone", MOST_BEHIND_BYTES >> 20)
            self._left()
            return
        self._frames.put(frame)

    def _write(self, loop: asyncio.AbstractEventLoop, written: asyncio.Event) -> None:
        try:
            while (frame := self._frames.get()) is not None:
                self._pipes.write(frame)
                self._written_bytes += len(frame)
            _call_on(loop, written.set)
        except OSError:
            _call_on(loop, self._left)


def _call_on(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:  # the loop has ended meanwhile
        log.debug("nobody waits for the last frames")


def write_all(fd: int) -> Callable[[bytes], None]:
    """Write whole frames to a descriptor."""

    def write(frames: bytes) -> None:
        left = memoryview(frames)
        while left:
            left = left[os.write(fd, left) :]

    return write


def unknown_method(request: WireRequest) -> WireError:
    """What a probe such as `ping` is answered."""
    return WireError(NO_METHOD, f"there is no method {request.method!r}", {"method": request.method})


def bad_params(error: Exception) -> WireError:
    return WireError(BAD_PARAMS, f"the params do not fit: {error}")


def _reply_in(line: bytes) -> JsonObject | None:
    """The reply in a line; None when it is a request, or nothing at all."""
    try:
        found = json.decode(line)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    is_reply = isinstance(found, dict) and "method" not in found and ("result" in found or "error" in found)
    return found if is_reply else None


def _id(request: WireRequest) -> int | str | None:
    return request.id if isinstance(request.id, int | str) else None
