"""`HttpModel`: a model behind one wire protocol over HTTP. The protocols differ in their `Wire` alone."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Protocol

from msgspec.structs import replace

from hermes.errors import HermesError, ProviderError
from hermes.models.endpoint import Endpoint
from hermes.models.http.errors import HttpError
from hermes.models.stream_wait import let_go
from hermes.models.wires.answer_reader import AnswerReader
from hermes.models.wires.classify import refusal
from hermes.schemas import Wire as Dialect
from hermes.schemas import WireTools, for_wire
from hermes.scope import TurnScope
from hermes.seams import Body, HttpStream, ModelRequest, Unit, whole
from hermes.types import CallAnnounced, ModelEvent, ModelResponse, ReasoningDelta, TextDelta, ToolDefinition

log = logging.getLogger(__name__)

LONG_PAST = 64 * 1024  # bytes of the units before the newest that are not copied: below, another write costs more
DRAIN_S = 1.0  # how long a server may take to end the transfer of an answer that is complete
_NO_STREAM = r"(?i)stream\w*.{0,60}(not|n't|un)\s*(be )?(support|allow|available|enabled)"


class Wire(Protocol):
    """One protocol: where requests go, what they look like, and how answers are read."""

    def url(self, *, is_stream: bool) -> str: ...
    async def headers(self, url: str, body: Body) -> dict[str, str]:
        """Headers of one request, its credentials included."""

    def head(self, request: ModelRequest) -> bytes:
        """The body up to the first unit. Equal for requests with equal tools, system prompt and options."""

    def unit(self, unit: Unit) -> bytes:
        """One unit, without the comma that parts it from the next."""

    @property
    def key(self) -> str:
        """Names everything that the bytes of a unit depend on."""

    @property
    def dialect(self) -> Dialect:
        """The JSON Schema that the provider takes in tools."""

    @property
    def apart(self) -> int:
        """How many of the last units `marked` wants one by one; at least 1."""

    def marked(self, pieces: list[bytes]) -> list[bytes]:
        """Encoded units with cache markers on the last ones, where the protocol has them."""

    def reading(self) -> AnswerReader: ...


class HttpModel:
    """`Model` over HTTP.

    Everything that does not grow stands at the front of the body, so each request is, to the byte and cache markers
    apart, a prefix of the next one up to its closing brackets. A unit is encoded once in its life.
    """

    def __init__(self, endpoint: Endpoint, wire: Wire, http: HttpStream) -> None:
        self.endpoint = endpoint
        self.name = endpoint.model
        self.provider = endpoint.provider
        self.base_url = endpoint.base_url
        self._wire = wire
        self._http = http
        self._head: tuple[tuple[ToolDefinition, ...], tuple[object, ...], bytes] | None = None  # with all it is made of
        self._tools: tuple[tuple[ToolDefinition, ...], WireTools] | None = None  # as offered, and as sent
        self._renamed = False
        self._streams = True  # until the provider says that it does not
        self.sent_bytes = 0  # of the last request's body

    def body(self, request: ModelRequest) -> bytes:
        """The exact bytes that are sent."""
        return whole(self._body(request))

    def _body(self, request: ModelRequest) -> Body:
        wire = self._wire
        head, pieces = self._encoded_head(request), wire.marked(request.pieces(wire.key, wire.unit, wire.apart))
        if len(pieces) > 1 and len(pieces[0]) >= LONG_PAST:
            return head, pieces[0], b"".join((b",", b",".join(pieces[1:]), b"]}"))
        parted = [b","] * (2 * len(pieces) - 1)
        parted[::2] = pieces
        return b"".join((head, *parted, b"]}"))

    async def stream(self, request: ModelRequest, scope: TurnScope) -> AsyncIterator[ModelEvent]:
        """Deltas and, last, the response; `ProviderError` when there is none. Leaving it closes the request."""
        if not self._streams and request.options.stream:
            request = without_stream(request)
        is_stream = request.options.stream
        url, body = self._wire.url(is_stream=is_stream), self._body(request)
        self.sent_bytes = len(body) if isinstance(body, bytes) else sum(map(len, body))
        reading = self._wire.reading()
        feed, end = (reading.feed, reading.end) if is_stream else (reading.hold, reading.end_held)
        patience = _Patience(reading)
        headers = await self._wire.headers(url, body)
        try:
            chunks = self._http.post_stream(url, headers, body, scope, self.endpoint.limits)
            try:
                async for chunk in chunks:
                    events = feed(chunk)
                    if not events:
                        patience.check()
                    for event in events:
                        yield self._ours(event) if self._renamed else event
                    if reading.is_complete:
                        await _drain(chunks)
                        break
            except BaseException:
                await let_go(chunks)
                raise
            for event in end():
                yield self._ours(event) if self._renamed else event
            response = reading.response()
        except (HttpError, ProviderError) as error:
            response = self._saved(reading, self._told(error, is_stream=is_stream), error)
        except HermesError:
            raise
        except Exception as error:  # the border to the server: nothing that it sends may end more than the request
            log.exception("the answer of %r could not be read", self.name)
            response = self._saved(reading, reading.broken(repr(error)), error)
        yield self._ours(response) if self._renamed else response

    def _saved(self, reading: AnswerReader, told: ProviderError, error: Exception) -> ModelResponse:
        """The answer, or what there is of it, when `error` ends the request; raised as `told` when there is none."""
        if not reading.is_worth_keeping:
            raise told from error
        return reading.response(broken_by=str(told))

    def _fitted(self, request: ModelRequest) -> ModelRequest:
        """The request with its tools as the provider takes them; what cannot be mapped is left out, and said once."""
        if self._tools is None or self._tools[0] is not request.tools:
            fitted = for_wire(request.tools, self._wire.dialect)
            for name, why in fitted.quarantined.items():
                log.warning("tool %r is not offered to %r: %s", name, self.name, why)
            self._tools = (request.tools, fitted)
            self._renamed = any(sent != ours for sent, ours in fitted.original_names.items())
        return replace(request, tools=self._tools[1].definitions)

    def _ours(self, event: ModelEvent) -> ModelEvent:
        """The event with tools called by the names that we gave them."""
        if self._tools is None or isinstance(event, TextDelta | ReasoningDelta):
            return event
        ours = self._tools[1].ours
        if isinstance(event, CallAnnounced):
            return CallAnnounced(ours(event.name))
        calls = tuple(replace(call, name=ours(call.name)) for call in event.message.tool_calls)
        return replace(event, message=replace(event.message, tool_calls=calls))

    def _told(self, error: HttpError | ProviderError, *, is_stream: bool) -> ProviderError:
        found = error if isinstance(error, ProviderError) else refusal(error, self.endpoint)
        if is_stream and found.reason == "format_error" and re.search(_NO_STREAM, str(found)):
            self._streams = False  # for as long as this model object lives: a session
            return ProviderError(
                f"{self.name!r} does not stream; asking again for a whole answer",
                reason="format_error",
                status=found.status,
                retryable=True,
                retry_after_s=0.0,
            )
        return found

    def _encoded_head(self, request: ModelRequest) -> bytes:
        tools, words = request.tools, (request.system, request.session_id, request.options)
        kept = self._head
        # Without tools the head may depend on the history: see `declared_tools`.
        if kept is not None and tools and tools is kept[0] and words == kept[1]:
            return kept[2]
        encoded = _one_copy(self._wire.head(self._fitted(request)))
        self._head = (tools, words, encoded)
        return encoded


class _Patience:
    """How long a stream may go on without saying anything: a comment or a ping is a sign of life, and no answer."""

    __slots__ = ("_now", "_reading", "_since", "_size")

    def __init__(self, reading: AnswerReader) -> None:
        self._reading = reading
        self._now = asyncio.get_running_loop().time
        self._since = self._now()
        self._size = reading.size

    def check(self) -> None:
        """Ask after each chunk that gave no delta: only the rest need to look at the clock."""
        now, reading = self._now(), self._reading
        if reading.size != self._size:
            self._size, self._since = reading.size, now
        elif now - self._since > reading.limits.comments_timeout:
            raise ProviderError(
                f"{reading.asked!r} has sent nothing but signs of life for {reading.limits.comments_timeout:g} s, the "
                "most that agent.answer.comments_timeout allows",
                reason="timeout",
                retryable=True,
            )


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Let the transfer of a complete answer end, so that its connection serves the next request; but only just."""
    try:
        async with asyncio.timeout(DRAIN_S):
            async for _ in chunks:
                pass
    except (HttpError, TimeoutError) as error:
        log.debug("an answer was complete before its transfer: %r", error)
        await let_go(chunks)


def without_stream(request: ModelRequest) -> ModelRequest:
    """The same request for a whole answer at once."""
    return replace(request, options=replace(request.options, stream=False))


def make_model(endpoint: Endpoint, http: HttpStream) -> HttpModel:
    """The model at `endpoint`."""
    if endpoint.api_mode == "anthropic_messages":
        from hermes.models.wires.anthropic_messages import anthropic_messages

        return anthropic_messages(endpoint, http)
    if endpoint.api_mode == "codex_responses":
        from hermes.models.wires.codex_responses import codex_responses

        return codex_responses(endpoint, http)
    if endpoint.api_mode == "bedrock_converse":
        from hermes.models.wires.bedrock_converse import bedrock_converse

        return bedrock_converse(endpoint, http)
    from hermes.models.wires.chat_completions import chat_completions

    return chat_completions(endpoint, http)


@lru_cache(maxsize=32)
def _one_copy(head: bytes) -> bytes:
    """The same bytes, once for all sessions that begin alike: a head is most of what one that rests holds."""
    return head
