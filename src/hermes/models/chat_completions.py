"""OpenAI chat completions: the wire protocol that most providers and local servers speak."""

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

import msgspec
from msgspec import Struct

from hermes.errors import ProviderError
from hermes.models.classify import provider_error
from hermes.models.http_errors import HttpError
from hermes.models.sse import SseParser
from hermes.scope import TurnScope
from hermes.seams import DEFAULT_LIMITS, HttpLimits, HttpStream, ModelRequest, Unit
from hermes.types import (
    CallAnnounced,
    Content,
    FinishReason,
    ImagePart,
    JsonObject,
    Message,
    ModelEvent,
    ModelResponse,
    ReasoningDelta,
    TextDelta,
    TextPart,
    ToolCall,
    ToolDefinition,
    Usage,
)

_encode = msgspec.json.Encoder().encode
_FINISH: dict[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
}


class Endpoint(Struct, frozen=True, kw_only=True):
    """Where a model is served, and the quirks of serving it there."""

    base_url: str
    model: str
    provider: str = "custom"
    api_key: str = ""
    headers: dict[str, str] = {}
    limits: HttpLimits = DEFAULT_LIMITS
    replay_reasoning: bool = False  # the provider wants `reasoning_content` back on turns with calls
    system_role: str = "system"
    max_tokens_field: str = "max_tokens"
    include_usage: bool = True


class ChatCompletions:
    """`Model` over `POST {base_url}/chat/completions`.

    Everything that does not grow stands before `messages` in the body, so each request is, to the byte, a prefix
    of the next one up to its two closing brackets.
    """

    def __init__(self, endpoint: Endpoint, http: HttpStream) -> None:
        self._endpoint = endpoint
        self._http = http
        self._key = f"chat:{endpoint.replay_reasoning}"
        self._head: tuple[ModelRequest, bytes] | None = None

    @property
    def name(self) -> str:
        return self._endpoint.model

    @property
    def provider(self) -> str:
        return self._endpoint.provider

    @property
    def base_url(self) -> str:
        return self._endpoint.base_url

    def body(self, request: ModelRequest) -> bytes:
        """The exact bytes that are sent."""
        units = [unit.encoded(self._key, self._encode_unit) for unit in request.units]
        return b"".join((self._encode_head(request), b",".join(units), b"]}"))

    async def stream(self, request: ModelRequest, scope: TurnScope) -> AsyncIterator[ModelEvent]:
        reading = _Reading(self.name)
        parser = SseParser()
        url = f"{self.base_url.rstrip('/')}/chat/completions"
        try:
            chunks = self._http.post_stream(url, self._headers(), self.body(request), scope, self._endpoint.limits)
            async with aclosing(chunks) as incoming:  # type: ignore[type-var]  # every implementation is a generator
                async for chunk in incoming:
                    for data in parser.feed(chunk):
                        for event in reading.take(data.data):
                            yield event
        except HttpError as error:
            if not reading.has_text:
                raise provider_error(error, self.provider, self.name) from error
            yield reading.response(partial=True)
            return
        yield reading.finished(parser.rest())

    def _headers(self) -> dict[str, str]:
        headers = {"content-type": "application/json", "accept": "text/event-stream", **self._endpoint.headers}
        if self._endpoint.api_key:
            headers["authorization"] = f"Bearer {self._endpoint.api_key}"
        return headers

    def _encode_head(self, request: ModelRequest) -> bytes:
        """The body up to the first message. Kept, because it is the same for all requests of a session."""
        kept = self._head
        if kept is not None and _same_head(kept[0], request):
            return kept[1]
        options = request.options
        head: JsonObject = {"model": self.name, "stream": options.stream}
        if options.stream and self._endpoint.include_usage:
            head["stream_options"] = {"include_usage": True}
        if options.max_tokens is not None:
            head[self._endpoint.max_tokens_field] = options.max_tokens
        if options.service_tier:
            head["service_tier"] = options.service_tier
        if options.reasoning:
            head["reasoning"] = options.reasoning
        if request.tools:
            head["tools"] = [_tool(tool) for tool in request.tools]
            if options.tool_choice != "auto":
                head["tool_choice"] = options.tool_choice
        head |= options.extra_body
        head["messages"] = []
        encoded = _encode(head).removesuffix(b"]}")
        if request.system:
            encoded += _encode({"role": self._endpoint.system_role, "content": request.system}) + b","
        self._head = (request, encoded)
        return encoded

    def _encode_unit(self, unit: Unit) -> bytes:
        return b",".join(_encode(message) for message in self._wire_messages(unit))

    def _wire_messages(self, unit: Unit) -> list[JsonObject]:
        first = unit.messages[0]
        if first.role == "assistant":
            return [self._assistant(first)]
        if first.role == "tool":
            return _results(unit)
        content = _content(first.content or "")
        if unit.context:
            content = (
                f"{content}\n\n{unit.context}"
                if isinstance(content, str)
                else [*content, {"type": "text", "text": unit.context}]
            )
        return [{"role": "user", "content": content}]

    def _assistant(self, message: Message) -> JsonObject:
        out: JsonObject = {"role": "assistant", "content": _content(message.content or "")}
        if message.tool_calls:
            out["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in message.tool_calls
            ]
        if message.reasoning_details:
            out["reasoning_details"] = message.reasoning_details
        if self._endpoint.replay_reasoning:
            out["reasoning_content"] = message.reasoning_content or message.reasoning or ""
        return out


def _same_head(a: ModelRequest, b: ModelRequest) -> bool:
    return a.tools is b.tools and a.system == b.system and a.options == b.options


def _tool(tool: ToolDefinition) -> JsonObject:
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
    }


def _results(unit: Unit) -> list[JsonObject]:
    """Tool messages; pictures among the results follow as a user message, since tool content is text here."""
    out: list[JsonObject] = []
    pictures: list[JsonObject] = []
    for message in unit.messages:
        content = _content(message.content or "")
        if not isinstance(content, str):
            pictures += [part for part in content if part.get("type") == "image_url"]
            content = "\n".join(part["text"] for part in content if part.get("type") == "text") or "(see the picture)"
        out.append({"role": "tool", "tool_call_id": message.tool_call_id, "content": content})
    extra = [*pictures, *([{"type": "text", "text": unit.context}] if unit.context else [])]
    if pictures:
        out.append({"role": "user", "content": extra})
    elif unit.context:
        out.append({"role": "user", "content": unit.context})
    return out


def _content(content: Content) -> str | list[JsonObject]:
    if isinstance(content, str):
        return content
    parts: list[JsonObject] = []
    for part in content:
        if isinstance(part, TextPart):
            parts.append({"type": "text", "text": part.text})
        elif isinstance(part, ImagePart):
            image = {"url": part.url} | ({"detail": part.detail} if part.detail else {})
            parts.append({"type": "image_url", "image_url": image})
        elif isinstance(part.raw.get("type"), str):
            parts.append(part.raw)
    return parts or "(empty)"


# -- answers -----------------------------------------------------------------------------------------------------


class _Function(Struct, frozen=True):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _CallPiece(Struct, frozen=True):
    index: int | None = None
    id: str | None = None
    function: _Function = _Function()


class _Delta(Struct, frozen=True):
    content: str | list[Any] | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    reasoning_details: Any = None
    tool_calls: list[_CallPiece] | None = None


class _Choice(Struct, frozen=True):
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None


class _PromptDetails(Struct, frozen=True):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _CompletionDetails(Struct, frozen=True):
    reasoning_tokens: int | None = None


class _Usage(Struct, frozen=True):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _CompletionDetails | None = None


class _Chunk(Struct, frozen=True):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    model: str | None = None
    error: Any = None


_decode_chunk = msgspec.json.Decoder(_Chunk).decode


class _Reading:
    """An answer as far as it has arrived."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._text: list[str] = []
        self._thought: list[str] = []
        self._thought_field = ""
        self._details: list[Any] = []
        self._calls: dict[int, dict[str, str]] = {}
        self._finish: str | None = None
        self._usage = Usage()
        self._done = False

    @property
    def has_text(self) -> bool:
        return any(text.strip() for text in self._text) and not self._calls

    def take(self, data: bytes) -> list[ModelEvent]:
        """The deltas of one server-sent event."""
        if data == b"[DONE]":
            self._done = True
            return []
        try:
            chunk = _decode_chunk(data)
        except msgspec.DecodeError as error:
            raise ProviderError(
                f"the answer of {self._model!r} is not valid: {error}", reason="server_error", retryable=True
            ) from error
        if chunk.error:
            raise provider_error(chunk.error, "", self._model)
        if chunk.usage is not None:
            self._usage = _usage(chunk.usage)
        self._model = chunk.model or self._model
        events: list[ModelEvent] = []
        for choice in chunk.choices[:1]:
            self._finish = choice.finish_reason or self._finish
            if (delta := choice.delta or choice.message) is not None:
                events += self._take_delta(delta)
        return events

    def _take_delta(self, delta: _Delta) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        for name in ("reasoning_content", "reasoning"):
            if thought := getattr(delta, name):
                self._thought_field = self._thought_field or name
                self._thought.append(thought)
                events.append(ReasoningDelta(thought))
                break
        if delta.reasoning_details:
            self._details += delta.reasoning_details if isinstance(delta.reasoning_details, list) else []
        if text := _plain(delta.content):
            self._text.append(text)
            events.append(TextDelta(text))
        for place, piece in enumerate(delta.tool_calls or ()):
            events += self._take_call(piece, place)
        return events

    def _take_call(self, piece: _CallPiece, place: int) -> list[ModelEvent]:
        key = piece.index if piece.index is not None else place
        call = self._calls.setdefault(key, {"id": "", "name": "", "arguments": ""})
        call["id"] = piece.id or call["id"]
        arguments = piece.function.arguments
        if arguments is not None:
            call["arguments"] += arguments if isinstance(arguments, str) else _encode(arguments).decode()
        if piece.function.name and not call["name"]:
            call["name"] = piece.function.name
            return [CallAnnounced(piece.function.name)]
        return []

    def finished(self, rest: bytes) -> ModelResponse:
        """The whole answer at the end of the stream; one that stops short of its end is partial or an error."""
        if not self._done and self._finish is None:
            if rest.lstrip().startswith(b"{"):  # the server answered without streaming
                self.take(rest)
            if self._finish is None:
                if self.has_text:
                    return self.response(partial=True)
                raise ProviderError(
                    f"the stream of {self._model!r} ended before its answer did", reason="server_error", retryable=True
                )
        return self.response()

    def response(self, *, partial: bool = False) -> ModelResponse:
        calls = tuple(
            ToolCall(call["id"], call["name"], call["arguments"] or "{}")
            for _, call in sorted(self._calls.items())
            if call["name"] or call["arguments"]
        )
        finish = _FINISH.get(self._finish or "stop", "stop")
        if calls and finish == "stop":
            finish = "tool_calls"
        thought = "".join(self._thought) or None
        message = Message(
            role="assistant",
            content="".join(self._text),
            tool_calls=() if partial else calls,
            finish_reason=finish,
            reasoning=thought,
            reasoning_content=thought if self._thought_field == "reasoning_content" else None,
            reasoning_details=self._details or None,
        )
        return ModelResponse(
            message=message, finish_reason=finish, usage=self._usage, model=self._model, partial=partial
        )


def _plain(content: str | list[Any] | None) -> str:
    """Some servers stream content as parts."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(part["text"] for part in content if isinstance(part, Mapping) and isinstance(part.get("text"), str))


def _usage(usage: _Usage) -> Usage:
    cached = usage.prompt_tokens_details.cached_tokens if usage.prompt_tokens_details else None
    written = usage.prompt_tokens_details.cache_write_tokens if usage.prompt_tokens_details else None
    fresh = None
    if usage.prompt_tokens is not None:
        fresh = max(0, usage.prompt_tokens - (cached or 0) - (written or 0))
    return Usage(
        input_tokens=fresh,
        output_tokens=usage.completion_tokens,
        cache_read_tokens=cached,
        cache_write_tokens=written,
        reasoning_tokens=usage.completion_tokens_details.reasoning_tokens if usage.completion_tokens_details else None,
    )
