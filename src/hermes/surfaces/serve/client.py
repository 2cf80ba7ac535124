"""One client: what it asks is answered, what it listens to is sent, and what it started stays when it goes.

It knows no transport. Whoever has one hands it lines and sends lines for it: a socket, stdin and stdout, a WebSocket,
or a screen in the same process.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct, ValidationError

from hermes.errors import HermesError
from hermes.host.events import NumberedEvent, QuestionAsked, TurnEnded, WorkChanged
from hermes.host.wire import frames
from hermes.host.wire.frames import (
    WireError,
    WireEvent,
    WireRequest,
    encode_error,
    encode_event,
    encode_result,
    read_request,
)
from hermes.surfaces.serve import session_facts, wire_events
from hermes.surfaces.serve.method import MethodCall, methods, wire_error
from hermes.typed import convert
from hermes.types import JsonObject, SessionRotated

if TYPE_CHECKING:
    from hermes.host.event_log import EventStream
    from hermes.host.live_session import LiveSession
    from hermes.surfaces.serve.server import SessionServer

AT_ONCE = 32  # requests of one client that are worked on side by side; more are not read
SEND_S = 600.0  # a client that reads nothing for so long is given up
log = logging.getLogger(__name__)
Send = Callable[[bytes], Awaitable[None]]


class Watch(Struct):
    """What a client sees of one session."""

    live: "LiveSession"
    stream: "EventStream"
    is_raw: bool  # the host's own events, else those of the protocol
    is_read_only: bool
    closes: bool  # the session ends with this connection


class Client:
    """`async with Client(server, send) as client`, then `await client.hear(line)` for each. Leaving it detaches."""

    def __init__(self, server: "SessionServer", send: Send) -> None:
        self.server = server
        self.environ: Mapping[str, str] = {}  # what sessions that it makes are given, on top of the server's
        self.cwd = ""
        self.name = ""
        self.watches: dict[str, Watch] = {}
        self._send = send
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()
        self._places = asyncio.Semaphore(AT_ONCE)
        self._sending = asyncio.Lock()  # guards the transport: a line is sent whole
        self._ordered = asyncio.Lock()  # guards the order of what is said
        self._due: set[str] = set()  # sessions whose state is to be told
        self.is_gone = asyncio.Event()

    async def __aenter__(self) -> "Client":
        await self._group.__aenter__()
        self.server.clients.add(self)
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.server.clients.discard(self)
        self.is_gone.set()
        closing = [watch.live for watch in self.watches.values() if watch.closes]
        for live_id in list(self.watches):
            self.unwatch(live_id)
        for task in self._tasks:
            task.cancel()
        await self._group.__aexit__(None, None, None)
        for live in closing:
            await live.close("client_gone")
        self.server.rest()

    # -- what it asks ------------------------------------------------------------------------------------------------

    async def hear(self, line: bytes) -> None:
        """Begin to answer a line; waits only while too much is asked at once."""
        if not line.strip():
            return
        try:
            request = read_request(line)
        except WireError as error:
            known = error.data or {}
            await self._line(encode_error(known.get("id"), WireError(error.code, error.message)))
            return
        await self._places.acquire()
        self._begin(self._answered(request))

    async def settle(self, limit_s: float) -> None:
        """Let it have the answers to what it has asked, as far as they come within this time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                for _ in range(AT_ONCE):
                    await self._places.acquire()

    async def refuse(self, error: WireError) -> None:
        """Tell it what is wrong with what it sends, where no request could be read."""
        await self._line(encode_error(None, error))

    async def _answered(self, request: WireRequest) -> None:
        try:
            reply = await self._reply(request)
            if request.wants_reply:
                await self._line(reply)
        finally:
            self._places.release()

    async def _reply(self, request: WireRequest) -> bytes:
        request_id = request.id if request.id is not UNSET else None
        try:
            return encode_result(request_id, await self._result(request))
        except WireError as error:
            return encode_error(request_id, error)
        except HermesError as error:
            return encode_error(request_id, wire_error(error))
        except Exception as error:  # the border: a fault in one request must not end the server
            log.exception("%s failed", request.method)
            words = f"{request.method} failed inside Hermes ({type(error).__name__}: {error})"
            return encode_error(request_id, WireError(frames.FAILED, words))

    async def _result(self, request: WireRequest) -> Any:
        method = methods().get(request.method)
        if method is None:
            raise WireError(frames.NO_METHOD, f"there is no method {request.method!r}", {"method": request.method})
        try:
            params = convert(request.params, method.params)
        except ValidationError as error:
            raise WireError(frames.BAD_PARAMS, f"{request.method}: {error}") from error
        if not method.is_ordered:
            return await method.run(MethodCall(self), params)
        async with self._ordered:
            return await method.run(MethodCall(self), params)

    # -- what it is told ---------------------------------------------------------------------------------------------

    def watch(self, live_id: str, watch: Watch) -> None:
        """Send it what happens in a session from now on."""
        self.unwatch(live_id)
        self.watches[live_id] = watch
        self._begin(self._pump(live_id, watch))

    def unwatch(self, live_id: str) -> None:
        watch = self.watches.pop(live_id, None)
        if watch is not None:
            watch.stream.close()

    def is_read_only(self, live_id: str) -> bool:
        watch = self.watches.get(live_id)
        return watch is not None and watch.is_read_only

    async def tell(self, kind: str, live_id: str = "", payload: JsonObject | None = None) -> None:
        """Send it an event that no session stores."""
        await self._line(encode_event(WireEvent(kind, live_id, payload)))

    def refresh(self, live_id: str) -> None:
        """Send it how a session stands, beside whatever else is sent; once, however often that changes meanwhile."""
        if live_id in self.watches and self.watches[live_id].is_raw and live_id not in self._due:
            self._due.add(live_id)
            self._begin(self._tell_state(live_id))

    async def _tell_state(self, live_id: str) -> None:
        async with self._sending, asyncio.timeout(SEND_S):
            self._due.discard(live_id)
            if (watch := self.watches.get(live_id)) is not None:
                event = WireEvent(wire_events.SESSION_STATE, live_id, session_facts.state(watch.live))
                await self._send(encode_event(event))

    async def _pump(self, live_id: str, watch: Watch) -> None:
        async for item in watch.stream:
            if watch.is_raw:
                await self._tell_raw(live_id, watch, item)
            else:
                await self._tell_shown(live_id, watch, item)
        if self.watches.get(live_id) is watch:  # closed by somebody else
            del self.watches[live_id]
            await self.tell("session.closed", live_id, {"session_key": watch.live.session_id})

    async def _tell_raw(self, live_id: str, watch: Watch, item: NumberedEvent) -> None:
        await self._line(encode_event(wire_events.told(item, live_id)))
        if isinstance(item.event, WorkChanged | TurnEnded | SessionRotated):
            await self.tell(wire_events.SESSION_STATE, live_id, session_facts.state(watch.live))

    async def _tell_shown(self, live_id: str, watch: Watch, item: NumberedEvent) -> None:
        live, event = watch.live, wire_events.shown(item, live_id)
        if event is not None and isinstance(item.event, TurnEnded) and event.payload is not None:
            event.payload["usage"] = await live.in_thread(session_facts.usage, live)
        if event is not None and not (isinstance(item.event, QuestionAsked) and not _is_open(live, item.event)):
            await self._line(encode_event(event))
        if isinstance(item.event, WorkChanged | SessionRotated):
            await self.tell("session.info", live_id, await self.server.full_info(live))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        if self.is_gone.is_set():
            work.close()
            return
        task = self._group.create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except (OSError, TimeoutError):  # nobody reads any more
            self.is_gone.set()
        except Exception:  # the border between clients: a fault with one must not end the others
            log.exception("a client could not be served")
            self.is_gone.set()

    async def _line(self, line: bytes) -> None:
        async with self._sending, asyncio.timeout(SEND_S):
            await self._send(line)


def _is_open(live: "LiveSession", event: QuestionAsked) -> bool:
    """Whether a question still waits: whoever comes late is not asked what was answered."""
    return any(one.id == event.question.id for one in live.questions.open_ones)
