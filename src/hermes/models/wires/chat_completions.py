"""OpenAI chat completions: the wire protocol that most providers and local servers speak."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from hermes import types
from hermes.models.endpoint import Endpoint
from hermes.models.wires import content as wire_content
from hermes.models.wires.answer_reader import Decoding, SseReading
from hermes.models.wires.answer_text import ThinkSplitter, parse_text_calls
from hermes.models.wires.answer_values import arguments_text, count, encode, is_deep, mapping
from hermes.models.wires.classify import provider_error
from hermes.models.wires.transport import HttpModel
from hermes.schemas import Wire as Dialect
from hermes.seams import Body, HttpStream, ModelRequest, Unit
from hermes.typed import convert

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
MAX_IMAGE_BYTES = wire_content.max_image_bytes("chat_completions")
MARKED_UNITS = 3
_TEXT_END = b'"}]}'
_AUDIO_FORMATS = ("wav", "mp3")
_FINISH: dict[str, types.FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "error": "incomplete",
}


def chat_completions(endpoint: Endpoint, http: HttpStream) -> HttpModel:
    """The model behind `POST {base_url}/chat/completions`."""
    return HttpModel(endpoint, ChatWire(endpoint), http)


class ChatWire:
    """`Wire` of chat completions."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self.dialect: Dialect = "gemini" if "gemini" in endpoint.model.lower() else "openai"
        quirks = endpoint.quirks
        self.apart = MARKED_UNITS if quirks.cache_markers else 1
        self.key = f"chat:{quirks.replay_reasoning:d}{quirks.replay_details:d}{quirks.cache_markers:d}"
        kind = _TextCallsReading if quirks.text_calls else _ChatReading
        self.reading = partial(kind, endpoint)
        self._headers = bearer(endpoint)
        self._url = f"{endpoint.base_url.rstrip('/')}/chat/completions"
        self._marked_end = b'","cache_control":' + encode(wire_content.cache_marker(quirks)) + b"}]}"

    def url(self, *, is_stream: bool) -> str:
        return self._url

    async def headers(self, url: str, body: Body) -> dict[str, str]:
        return self._headers

    def head(self, request: ModelRequest) -> bytes:
        options, quirks = request.options, self._endpoint.quirks
        head: types.JsonObject = {"model": self._endpoint.model, "stream": options.stream}
        if options.stream and quirks.include_usage:
            head["stream_options"] = {"include_usage": True}
        if options.max_tokens is not None:
            head[quirks.max_tokens_field] = options.max_tokens
        if options.service_tier:
            head["service_tier"] = options.service_tier
        head |= self._reasoning(options.reasoning)
        if request.tools:
            head["tools"] = [chat_tool(tool) for tool in request.tools]
            if options.tool_choice != "auto":
                head["tool_choice"] = _tool_choice(options.tool_choice)
        if options.output_schema is not None:
            from hermes.models.wires.output_format import asked_format  # for who wants data

            head |= asked_format(request, self._endpoint)
        head |= {**self._endpoint.extra_body, **options.extra_body, "messages": []}
        encoded = encode(head).removesuffix(b"]}")
        if request.system:
            system: str | list[types.JsonObject] = request.system
            if quirks.cache_markers:  # what does not move is read from the cache by every session that begins so
                system = [_text_part(text) for text in wire_content.system_texts(request)]
                system[0]["cache_control"] = wire_content.cache_marker(quirks)
            encoded += encode({"role": quirks.system_role, "content": system})
            encoded += b"," if request.units else b""
        return encoded

    def unit(self, unit: Unit) -> bytes:
        first = unit.messages[0]
        if first.role == "assistant":
            return encode(self._assistant(first))
        if first.role == "tool":
            return encode(self._results(unit))[1:-1]
        content = _user_content(first.content or "")
        if unit.context.strip():
            content = (
                f"{content}\n\n{unit.context}" if isinstance(content, str) else [*content, _text_part(unit.context)]
            )
        return encode({"role": "user", "content": self._text(content) if isinstance(content, str) else content})

    def marked(self, pieces: list[bytes]) -> list[bytes]:
        """Markers for aggregators that serve Claude, on the last text of the last units that end in text."""
        if not self._endpoint.quirks.cache_markers:
            return pieces
        return [*pieces[:-MARKED_UNITS], *(self._marked(piece) for piece in pieces[-MARKED_UNITS:])]

    def _marked(self, piece: bytes) -> bytes:
        return piece[: -len(_TEXT_END)] + self._marked_end if piece.endswith(_TEXT_END) else piece

    def _reasoning(self, asked: types.JsonObject | None) -> types.JsonObject:
        effort, style = wire_content.effort_of(asked), self._endpoint.quirks.reasoning
        if effort is None or style == "none":
            return {}
        if style == "object":
            return {"reasoning": {"enabled": False} if effort == "none" else {"enabled": True, "effort": effort}}
        if style == "thinking":
            return {"thinking": {"type": "disabled" if effort == "none" else "enabled"}}
        return {"reasoning_effort": effort}

    def _text(self, text: str) -> str | list[types.JsonObject]:
        """Text as it stands, or as a part, which can carry a marker."""
        return [_text_part(text)] if self._endpoint.quirks.cache_markers else text

    def _results(self, unit: Unit) -> list[types.JsonObject]:
        """Tool messages; pictures among the results follow as a user message, since tool content is text here."""
        out: list[types.JsonObject] = []
        after: list[types.JsonObject] = []
        for message in unit.messages:
            text = message.content
            if not isinstance(text, str):
                text = "\n".join(wire_content.texts(text))
                after += [_image_part(part) for part in wire_content.images(message)]
            content = self._text(text or wire_content.SEE_PICTURE)
            out.append({"role": "tool", "tool_call_id": message.tool_call_id, "content": content})
        if unit.context.strip():
            after.append(_text_part(unit.context))
        if after:
            out.append({"role": "user", "content": after})
        return out

    def _assistant(self, message: types.Message) -> types.JsonObject:
        content = message.content
        text = content if isinstance(content, str) else "\n".join(wire_content.texts(content))
        out: types.JsonObject = {"role": "assistant", "content": text}
        if message.tool_calls:
            out["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in message.tool_calls
            ]
        if self._endpoint.quirks.replay_details and (details := _own_details(message.reasoning_details)):
            out["reasoning_details"] = details
        if self._endpoint.quirks.replay_reasoning:
            out["reasoning_content"] = message.reasoning_content or message.reasoning or ""
        return out


def bearer(endpoint: Endpoint) -> dict[str, str]:
    """The headers of an OpenAI-style request."""
    headers = {"content-type": "application/json", "accept": "text/event-stream"}
    if endpoint.api_key:
        headers["authorization"] = f"Bearer {endpoint.api_key}"
    return headers | endpoint.headers


def chat_tool(tool: types.ToolDefinition) -> types.JsonObject:
    """A tool as chat completions offer it."""
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
    }


def _tool_choice(choice: str) -> Any:
    if choice in ("auto", "none", "required"):
        return choice
    return {"type": "function", "function": {"name": choice}}


def _own_details(details: Any) -> list[Any]:
    """Of the stored details those that came over this protocol."""
    if not isinstance(details, list):
        return []
    return [one for one in details if isinstance(one, Mapping) and str(one.get("type", "")).startswith("reasoning.")]


def _text_part(text: str) -> types.JsonObject:
    return {"type": "text", "text": text}


def _image_part(part: types.ImagePart) -> types.JsonObject:
    found = wire_content.picture(part, types=IMAGE_TYPES, max_bytes=MAX_IMAGE_BYTES, urls=True)
    if not isinstance(found, wire_content.Picture):
        return _text_part(found)
    image = {"url": found.url or f"data:{found.media_type};base64,{found.data}"}
    if part.detail in ("low", "high", "auto"):
        image["detail"] = part.detail
    return {"type": "image_url", "image_url": image}


def _user_content(content: types.Content) -> str | list[types.JsonObject]:
    if isinstance(content, str):
        return content
    parts: list[types.JsonObject] = []
    for part in content:
        if isinstance(part, types.ImagePart):
            parts.append(_image_part(part))
        elif isinstance(part, types.OpaquePart):
            parts.append(part.raw if _is_chat_part(part.raw) else _text_part(wire_content.texts((part,))[0]))
        else:
            parts.append(_text_part(part.text))
    return parts


def _is_chat_part(raw: types.JsonObject) -> bool:
    """Whether `raw` is one of this protocol's own parts, in the shape it asks for."""
    inner = raw.get(str(raw.get("type")))
    if not isinstance(inner, Mapping) or set(raw) != {"type", raw["type"]}:
        return False
    if raw["type"] == "input_audio":
        return isinstance(inner.get("data"), str) and inner.get("format") in _AUDIO_FORMATS
    if raw["type"] == "file":
        return bool(inner) and all(isinstance(value, str) for value in inner.values())
    return False


# -- answers -----------------------------------------------------------------------------------------------------


class _Function(Struct, frozen=True, gc=False):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _CallPiece(Struct, frozen=True, gc=False):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(Struct, frozen=True, gc=False):
    content: str | list[Any] | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    reasoning_details: Any = None
    tool_calls: list[_CallPiece] | None = None


class _ChatChoice(Struct, frozen=True, gc=False):
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None
    logprobs: Any = None
    token_ids: Any = None  # of servers that tell them (`return_token_ids`)


class _Chunk(Struct, frozen=True, gc=False):
    choices: list[_ChatChoice] | None = None
    usage: Any = None
    model: str | None = None
    error: Any = None


class _ChatReading(SseReading):
    decoding = Decoding(_Chunk)
    _thought_field = ""
    _details: list[Any] | None = None
    _split: ThinkSplitter | None = None  # from the first word on
    _is_words = False  # whether all content that follows is words

    def take_whole(self, body: Any) -> None:
        try:
            self.take([convert(body, _Chunk)])
        except msgspec.ValidationError as error:
            raise self.broken(str(error)) from error
        self.tell_words()
        self.is_complete = self.finish is not None or bool(self.deltas)

    def end(self) -> list[types.ModelEvent]:
        events = super().end()
        self.is_complete = self.is_complete or self.finish is not None
        if self._split is not None and not self._is_words:
            self.say(self._split.rest())
            events += self.fresh()
        return events

    def extras(self) -> types.JsonObject:
        extras: types.JsonObject = {"reasoning_details": self._details} if self._details else {}
        if self.thought and self._thought_field == "reasoning_content":
            extras["reasoning_content"] = "".join(self.thought)
        return extras

    def take(self, events: Iterable[_Chunk]) -> None:
        for event in events:
            if event.error:
                raise provider_error(event.error, self.provider, self.asked)
            if type(event.usage) is dict:
                self.usage = _usage(event.usage)
            if event.model:
                self.served_by(event.model)
            if not (choices := event.choices):
                continue
            choice = choices[0]
            if choice.finish_reason:
                self.finish = _FINISH.get(choice.finish_reason, "stop")
            if choice.logprobs is not None or choice.token_ids is not None:
                from hermes.models.wires.answer_tokens import tokens_told  # for who asks for them

                self.tokens = self.tokens or {}
                self.keep(tokens_told(self.tokens, choice.logprobs, choice.token_ids))
            delta = choice.delta or choice.message
            if delta is None:
                continue
            if delta.reasoning_content or delta.reasoning or delta.reasoning_details:
                self._take_thought(delta)
            if content := delta.content:
                if self._is_words and isinstance(content, str):
                    self.text.append(content)
                else:
                    self._speak(content)
            if delta.tool_calls:
                self._take_calls(delta.tool_calls)

    def _take_thought(self, delta: _Delta) -> None:
        if thought := delta.reasoning_content or delta.reasoning:
            named = "reasoning_content" if delta.reasoning_content else "reasoning"
            self._thought_field = self._thought_field or named
            self.think(thought)
        if isinstance(delta.reasoning_details, list) and not is_deep(delta.reasoning_details):
            self.keep(len(encode(delta.reasoning_details)))
            self._details = self._details or []
            self._details += delta.reasoning_details

    def _speak(self, content: str | list[Any]) -> None:
        """Words, once it is certain that they are not a leading block of thoughts."""
        text = content if isinstance(content, str) else _plain(content)
        if not self._is_words:
            self._split = self._split or ThinkSplitter()
            thought, text = self._split.feed(text)
            self._is_words = self._split.is_done
            if thought:
                self.think(thought)
        if text:
            self.text.append(text)

    def _take_calls(self, pieces: list[_CallPiece]) -> None:
        for place, piece in enumerate(pieces):
            function = piece.function or _Function()
            self.call(
                piece.index if piece.index is not None else place,
                piece.id or "",
                function.name or "",
                arguments_text(function.arguments),
            )


class _TextCallsReading(_ChatReading):
    """The answer of a model that writes its calls as text.

    A call must not be shown as an answer, so nothing is shown before the end is seen.
    """

    _shows_words = False

    def response(self, *, broken_by: str = "") -> types.ModelResponse:
        if not self.calls and self.has_ended:
            text, found = parse_text_calls("".join(self.text))
            if found:
                self.text = [text]
                for place, (name, arguments) in enumerate(found):
                    self.call(place, name=name, arguments=arguments)
        return super().response(broken_by=broken_by)


def _plain(content: list[Any]) -> str:
    """Some servers stream content as parts."""
    return "".join(part["text"] for part in content if isinstance(part, Mapping) and isinstance(part.get("text"), str))


def _usage(raw: Mapping[str, Any]) -> types.Usage:
    read, made = mapping(raw.get("prompt_tokens_details")), mapping(raw.get("completion_tokens_details"))
    cached, written = count(read.get("cached_tokens")), count(read.get("cache_write_tokens"))
    if cached is None:
        cached = count(raw.get("prompt_cache_hit_tokens"))
    prompt = count(raw.get("prompt_tokens"))
    return types.Usage(
        input_tokens=None if prompt is None else max(0, prompt - (cached or 0) - (written or 0)),
        output_tokens=count(raw.get("completion_tokens")),
        cache_read_tokens=cached,
        cache_write_tokens=written,
        reasoning_tokens=count(made.get("reasoning_tokens")),
    )
