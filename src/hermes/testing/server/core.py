"""`ScriptedServer`: a provider on loopback that answers from a script and refuses what the real one would refuse."""

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType

import msgspec

from hermes.testing.replies import Fault, Reply
from hermes.testing.server.bedrock import BedrockWire
from hermes.testing.server.chat import ChatServerWire
from hermes.testing.server.exchange import MAX_HEAD_BYTES, Exchange, RecordedRequest, read_request
from hermes.testing.server.faults import FAULTS, Failing, FaultAction
from hermes.testing.server.faults import _builtin as _builtin_faults  # adds itself to the table
from hermes.testing.server.messages import MessagesServerWire
from hermes.testing.server.responses import ResponsesServerWire
from hermes.testing.server.wire import ServerWire, WireAnswer
from hermes.types import Usage

del _builtin_faults

Script = Iterable[Reply] | Callable[[RecordedRequest], Reply]

_WIRES: dict[str, ServerWire] = {
    "/chat/completions": ChatServerWire(),
    "/messages": MessagesServerWire(),
    "/responses": ResponsesServerWire(),
    "/converse": BedrockWire(),
    "/converse-stream": BedrockWire(),
}


class ScriptedServer:
    """Speaks chat completions, Anthropic Messages, OpenAI Responses and Bedrock Converse, streaming when asked to.

        async with ScriptedServer([calls("terminal", command="ls"), says("Three files.")]) as server:
            ...  # a client of server.base_url
        server.assert_finished()

    Requests take replies in the order they arrive, whichever protocol they use. `replies` may be endless, or a
    function from request to reply. A request that the real provider would refuse is answered with 400, takes no
    reply and is kept in `mistakes`. One for which there is no reply left is answered with 500. `GET .../models`
    lists `models` with the `window` of each, takes no reply and is no part of `requests`: it is kept in `looked_up`.
    A window of None is told by nobody. With `is_recording` off, both stay empty (for long benchmarks).
    """

    def __init__(
        self,
        replies: Script = (),
        *,
        port: int = 0,
        models: tuple[str, ...] = ("scripted",),
        window: int | None = 128_000,
        is_recording: bool = True,
        is_checking: bool = True,
    ) -> None:
        self.requests: list[RecordedRequest] = []
        self.looked_up: list[RecordedRequest] = []
        self.mistakes: list[str] = []
        self.reported_usage: list[Usage] = []  # one for each answer that told its tokens, in that order
        self.answered = 0
        self._port = port
        self._models = models
        self._window = window
        self._is_recording = is_recording
        self._is_checking = is_checking
        self._choose = replies if callable(replies) else None
        self._replies: Iterator[Reply] = iter(()) if callable(replies) else iter(replies)
        self._server: asyncio.Server | None = None
        self._handlers: set[asyncio.Task[None]] = set()
        self._arrived = asyncio.Condition()

    @property
    def url(self) -> str:
        """`http://127.0.0.1:<port>`: the base for Anthropic and Bedrock clients."""
        assert self._server is not None, "the server is not running"
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def base_url(self) -> str:
        """`url` and `/v1`: the base for OpenAI-style clients."""
        return f"{self.url}/v1"

    async def __aenter__(self) -> "ScriptedServer":
        self._server = await asyncio.start_server(
            self._connected, "127.0.0.1", self._port, backlog=1024, limit=MAX_HEAD_BYTES
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for handler in self._handlers:
            handler.cancel()
        if self._handlers:
            await asyncio.wait(self._handlers)

    def assert_finished(self) -> None:
        """Fail unless every reply was taken, none was missing, and every request was right."""
        assert not self.mistakes, "the scripted server saw mistakes: " + "; ".join(self.mistakes)
        left = next(self._replies, None)
        assert left is None, f"the script was not played to its end; next was {left!r}"

    async def wait_for_requests(self, count: int) -> None:
        """Return once `count` requests have arrived in all. Bound it with `asyncio.timeout`."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) >= count)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handler = asyncio.current_task()
        assert handler is not None
        self._handlers.add(handler)
        try:
            await self._serve(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            # The client left, or the server is closing: asyncio's own handler would print a traceback for either.
            writer.transport.abort()
        finally:
            self._handlers.discard(handler)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (parts := await read_request(reader)) is not None:
            method, path, headers, raw = parts
            request = RecordedRequest(method, path, headers, raw, _decoded(raw) if self._is_checking else None)
            if _is_list(request):
                self.looked_up += [request] if self._is_recording else []
            elif self._is_recording:
                self.requests.append(request)
                async with self._arrived:
                    self._arrived.notify_all()
            exchange = Exchange(request, reader, writer)
            await self._answer(exchange)
            if not exchange.keeps_connection or headers.get("connection", "").lower() == "close":
                return

    async def _answer(self, exchange: Exchange) -> None:
        request = exchange.request
        path = request.path.partition("?")[0]
        if _is_list(request):
            told = {"object": "model", "owned_by": "script"}
            more = {} if self._window is None else {"context_length": self._window}
            listed = [{"id": name, **told, **more} for name in self._models]
            await exchange.respond(200, msgspec.json.encode({"object": "list", "data": listed}))
            return
        wire = next((wire for end, wire in _WIRES.items() if path.endswith(end)), None)
        if wire is None or request.method != "POST":
            self.mistakes.append(f"{request.method} {path}: no such endpoint")
            await exchange.respond(404, b'{"error": {"message": "no such endpoint: check the base URL"}}')
            return
        body = request.json if self._is_checking else _decoded(request.raw)
        wrong = "the body is not a JSON object" if not isinstance(body, dict) else wire.mistake(body)
        if wrong is not None and self._is_checking:
            self.mistakes.append(f"{path}: {wrong}")
            refused = wire.error(400, "invalid_request", wrong)
            await exchange.respond(400, refused.body, refused.headers)
            return
        reply = self._choose(request) if self._choose else next(self._replies, None)
        if reply is None:
            text = f"the script has no reply left: this is request {self.answered + 1}"
            self.mistakes.append(text)
            missing = wire.error(500, "script_exhausted", text)
            await exchange.respond(500, missing.body, missing.headers)
            return
        await self._play(reply, wire, exchange, body)

    async def _play(self, reply: Reply, wire: ServerWire, exchange: Exchange, body: object) -> None:
        self.answered += 1
        path = exchange.request.path.partition("?")[0]
        fields = body if isinstance(body, dict) else {}
        usage = reply.usage or _made_up_usage(reply, len(exchange.request.raw))
        answer = WireAnswer(
            reply=reply,
            number=self.answered,
            model=str(fields.get("model") or path.split("/")[-2]),
            usage=usage if reply.reports_usage else None,
        )
        if reply.pace.latency_s:
            await asyncio.sleep(reply.pace.latency_s)
        is_stream = path.endswith("/converse-stream") or fields.get("stream") is True
        failing = Failing(exchange, answer, wire, is_stream, lambda: self._report(answer))
        fault = reply.fault or Fault("good")
        try:
            await _action(fault.name)(failing, **fault.options)
        except (KeyError, TypeError) as error:
            self.mistakes.append(f"fault {fault.name!r} with {fault.options!r}: {error}")
            exchange.reset()

    def _report(self, answer: WireAnswer) -> None:
        if answer.usage is not None:
            self.reported_usage.append(answer.usage)


def _action(name: str) -> FaultAction:
    # A module's file name becomes a table name with dashes; scripts may write either.
    return FAULTS.load(name if name in FAULTS.names() else name.replace("_", "-"))


def _is_list(request: RecordedRequest) -> bool:
    return request.method == "GET" and request.path.partition("?")[0].endswith("/models")


def _decoded(raw: bytes) -> object:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _made_up_usage(reply: Reply, request_bytes: int) -> Usage:
    written = len(reply.text) + len(reply.thinking) + sum(len(call.arguments) for call in reply.calls)
    return Usage(input_tokens=request_bytes // 4 + 1, output_tokens=written // 4 + 1)


class ServerThread:
    """Runs a `ScriptedServer` in a thread with its own loop; the server stops when the block is left.

        with ServerThread([says("hi")]) as server:
            ...  # a client of server.base_url
        server.assert_finished()

    What is yielded is the server itself: read its lists and call `assert_finished`, but await nothing on it.
    """

    def __init__(
        self,
        replies: Script = (),
        *,
        port: int = 0,
        models: tuple[str, ...] = ("scripted",),
        window: int | None = 128_000,
    ) -> None:
        self._server = ScriptedServer(replies, port=port, models=models, window=window)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="scripted-server", daemon=True)
        self._ready = threading.Event()
        self._error: OSError | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._leave = asyncio.Event()

    def __enter__(self) -> ScriptedServer:
        self._thread.start()
        self._ready.wait()
        if self._error is not None:
            raise self._error
        return self._server

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._leave.set)
        self._thread.join()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            async with self._server:
                self._ready.set()
                await self._leave.wait()
        except OSError as error:  # the port is taken: raised again where the caller stands
            self._error = error
        finally:
            self._ready.set()
