"""Anthropic Messages: Anthropic's own API, and the endpoints that speak its protocol."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

from hermes import types
from hermes.models.endpoint import Endpoint
from hermes.models.wires import claude_quirks
from hermes.models.wires import content as wire_content
from hermes.models.wires.answer_reader import AnswerReader, Decoding, SseReading
from hermes.models.wires.answer_values import arguments_text, count, encode, listing, mapping, words
from hermes.models.wires.classify import provider_error
from hermes.models.wires.transport import HttpModel
from hermes.schemas import Wire as Dialect
from hermes.seams import Body, HttpStream, ModelRequest

API_VERSION = "2023-06-01"
IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
MAX_IMAGE_BYTES = wire_content.max_image_bytes("anthropic_messages")
LONG_CACHE_BETA = "extended-cache-ttl-2025-04-11"
MARKED_UNITS = 3
THINKING = ("thinking", "redacted_thinking")
_STOP: dict[str, types.FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
    "pause_turn": "incomplete",
}


def anthropic_messages(endpoint: Endpoint, http: HttpStream) -> HttpModel:
    """The model behind `POST {base_url}/v1/messages`."""
    return HttpModel(endpoint, MessagesWire(endpoint), http)


class MessagesWire(wire_content.BlockWire):
    """`Wire` of Anthropic Messages."""

    apart = MARKED_UNITS
    dialect: Dialect = "anthropic"

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        quirks = endpoint.quirks
        self.key = f"messages:{quirks.keeps_thinking:d}{quirks.replay_reasoning:d}"
        self._marker = wire_content.cache_marker(quirks)
        self._spliced = b',"cache_control":' + encode(self._marker) + b"}]}"

    def url(self, *, is_stream: bool) -> str:
        base = self._endpoint.base_url.rstrip("/")
        return f"{base}/messages" if base.endswith("/v1") else f"{base}/v1/messages"

    async def headers(self, url: str, body: Body) -> dict[str, str]:
        endpoint = self._endpoint
        headers = {"content-type": "application/json", "anthropic-version": API_VERSION}
        if endpoint.api_key:
            headers["x-api-key"] = endpoint.api_key
        if endpoint.quirks.cache_markers and endpoint.quirks.cache_ttl == "1h":
            headers["anthropic-beta"] = LONG_CACHE_BETA
        return headers | endpoint.headers

    def head(self, request: ModelRequest) -> bytes:
        endpoint, options = self._endpoint, request.options
        most = endpoint.max_output or claude_quirks.max_output(endpoint.model)
        if endpoint.context_length:
            most = min(most, endpoint.context_length)
        asked = claude_quirks.thinking_fields(endpoint.model, options.reasoning, options.max_tokens or most)
        head: types.JsonObject = {"model": claude_quirks.plain_name(endpoint.model), "stream": options.stream, **asked}
        if options.service_tier:
            head["service_tier"] = options.service_tier
        if request.system:
            if endpoint.quirks.cache_markers:
                first, *rest = [{"type": "text", "text": text} for text in wire_content.system_texts(request)]
                head["system"] = [{**first, "cache_control": self._marker}, *rest]
            else:
                head["system"] = request.system
        if tools := wire_content.declared_tools(request):
            head["tools"] = [_tool(tool) for tool in tools]
            if (choice := _tool_choice(options.tool_choice if request.tools else "none")) is not None:
                head["tool_choice"] = choice
        if options.output_schema is not None:
            from hermes.models.wires.output_format import asked_format  # for who wants data

            for name, fields in asked_format(request, endpoint).items():
                head[name] = {**head.get(name, {}), **fields}  # the effort of its thoughts is asked for there, too
        head |= {**endpoint.extra_body, **options.extra_body, "messages": []}
        return encode(head).removesuffix(b"]}")

    def marked(self, pieces: list[bytes]) -> list[bytes]:
        """Markers on the last block of the last units: what was written to the cache last time is read from it now."""
        if not self._endpoint.quirks.cache_markers:
            return pieces
        last = [piece[: -len(b"}]}")] + self._spliced for piece in pieces[-MARKED_UNITS:]]
        return [*pieces[:-MARKED_UNITS], *last]

    def reading(self) -> AnswerReader:
        return _MessagesReading(self._endpoint)

    def text(self, text: str) -> types.JsonObject:
        return {"type": "text", "text": text}

    def image(self, part: types.ImagePart) -> types.JsonObject:
        found = wire_content.picture(part, types=IMAGE_TYPES, max_bytes=MAX_IMAGE_BYTES, urls=True)
        if not isinstance(found, wire_content.Picture):
            return self.text(found)
        if found.url:
            return {"type": "image", "source": {"type": "url", "url": found.url}}
        return {"type": "image", "source": {"type": "base64", "media_type": found.media_type, "data": found.data}}

    def result(self, message: types.Message) -> types.JsonObject:
        blocks = self.blocks(message.content)
        content: Any = blocks[0]["text"] if len(blocks) == 1 and blocks[0]["type"] == "text" else blocks
        out: types.JsonObject = {
            "type": "tool_result",
            "tool_use_id": wire_content.strict_id(message.tool_call_id or ""),
        }
        out["content"] = content
        if message.status == "failed":
            out["is_error"] = True
        return out

    def thinking(self, message: types.Message) -> list[types.JsonObject]:
        quirks = self._endpoint.quirks
        if quirks.keeps_thinking:
            return own_thinking(message.reasoning_details)
        thought = message.reasoning_content or message.reasoning
        if quirks.replay_reasoning and message.tool_calls and thought and thought.strip():
            return [{"type": "thinking", "thinking": thought, "signature": ""}]
        return []

    def calls(self, message: types.Message) -> list[types.JsonObject]:
        return [
            {
                "type": "tool_use",
                "id": wire_content.strict_id(call.id),
                "name": call.name,
                "input": msgspec.Raw(call.arguments.encode()),
            }
            for call in message.tool_calls
        ]


def own_thinking(details: Any) -> list[types.JsonObject]:
    """The signed thinking blocks among stored details; others are not this protocol's."""
    if not isinstance(details, list):
        return []
    found: list[types.JsonObject] = []
    for one in details:
        if not isinstance(one, Mapping):
            continue
        if one.get("type") == "thinking" and _filled(one, "signature") and isinstance(one.get("thinking"), str):
            found.append({"type": "thinking", "thinking": one["thinking"], "signature": one["signature"]})
        elif one.get("type") == "redacted_thinking" and _filled(one, "data"):
            found.append({"type": "redacted_thinking", "data": one["data"]})
    return found


class ThoughtDraft(Struct):
    """A signed block of thoughts that is still being written, or one that only the provider can read."""

    thinking: list[str] = field(default_factory=list)
    signature: list[str] = field(default_factory=list)
    redacted: str = ""

    def finished(self) -> types.JsonObject:
        if self.redacted:
            return {"type": "redacted_thinking", "data": self.redacted}
        return {"type": "thinking", "thinking": "".join(self.thinking), "signature": "".join(self.signature)}


def thought_blocks(drafts: Mapping[int, ThoughtDraft]) -> list[types.JsonObject] | None:
    """The blocks that the provider wants back, in their order."""
    return own_thinking([draft.finished() for _, draft in sorted(drafts.items())]) or None


def _filled(block: Mapping[str, Any], name: str) -> bool:
    return isinstance(block.get(name), str) and bool(block[name])


def _tool(tool: types.ToolDefinition) -> types.JsonObject:
    schema = tool.parameters if tool.parameters.get("type") == "object" else {**tool.parameters, "type": "object"}
    return {"name": tool.name, "description": tool.description, "input_schema": schema}


def _tool_choice(choice: str) -> types.JsonObject | None:
    if choice == "auto":
        return None
    kinds = {"required": "any", "none": "none"}
    return {"type": kinds[choice]} if choice in kinds else {"type": "tool", "name": choice}


# -- answers -----------------------------------------------------------------------------------------------------


class _MessagesEvent(Struct, frozen=True, gc=False):
    type: str = ""
    index: int = 0
    message: Any = None
    content_block: Any = None
    delta: Any = None
    usage: Any = None
    error: Any = None


class _MessagesReading(SseReading):
    decoding = Decoding(_MessagesEvent)

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint)
        self._thinking: dict[int, ThoughtDraft] = {}
        self._tokens: dict[str, int] = {}

    def take(self, events: Iterable[_MessagesEvent]) -> None:
        for event in events:
            if event.type == "content_block_delta":
                delta = mapping(event.delta)
                if delta.get("type") == "text_delta":
                    self.say(words(delta.get("text")))
                else:
                    self._delta(event.index, delta)
            elif event.type == "content_block_start":
                self._block(event.index, mapping(event.content_block))
            elif event.type == "message_start":
                message = mapping(event.message)
                self.served_by(words(message.get("model")))
                self._tokens |= _counts(message.get("usage"))
            elif event.type == "message_delta":
                self._stopped(mapping(event.delta).get("stop_reason"))
                self._counted(event.usage)
            elif event.type == "message_stop":
                self.is_complete = True
                return
            elif event.type == "error":
                raise provider_error({"error": event.error}, self.provider, self.asked)

    def take_whole(self, body: Any) -> None:
        self.served_by(words(body.get("model")))
        content = body.get("content")
        for index, block in enumerate(map(mapping, listing(content))):
            self._block(index, block)
            if block.get("type") == "tool_use":
                self.call(index, arguments=arguments_text(block.get("input")))
        self._stopped(body.get("stop_reason"))
        self._counted(body.get("usage"))
        self.is_complete = isinstance(content, list)

    def extras(self) -> types.JsonObject:
        return {"reasoning_details": thought_blocks(self._thinking)}

    def _block(self, index: int, block: Mapping[str, Any]) -> None:
        kind = block.get("type")
        if kind == "tool_use":
            self.call(index, call_id=words(block.get("id")), name=words(block.get("name")))
        elif kind in THINKING:
            self._thought_piece(index, words(block.get("thinking")), words(block.get("signature")))
            self._thinking[index].redacted = words(block.get("data")) if kind != "thinking" else ""
            self.keep(len(self._thinking[index].redacted))
        elif kind == "text":
            self.say(words(block.get("text")))

    def _delta(self, index: int, delta: Mapping[str, Any]) -> None:
        kind = delta.get("type")
        if kind == "input_json_delta":
            self.call(index, arguments=words(delta.get("partial_json")))
        elif kind == "thinking_delta":
            self._thought_piece(index, words(delta.get("thinking")), "")
        elif kind == "signature_delta":
            self._thought_piece(index, "", words(delta.get("signature")))

    def _thought_piece(self, index: int, text: str, signature: str) -> None:
        draft = self._thinking.setdefault(index, ThoughtDraft())
        draft.thinking.append(text)
        draft.signature.append(signature)
        self.keep(len(signature) + 1)
        self.think(text)

    def _stopped(self, reason: object) -> None:
        if isinstance(reason, str):
            self.finish = _STOP.get(reason, "stop")

    def _counted(self, usage: object) -> None:
        """The last word on tokens. What was read is told at the start, but alone it would look like the whole."""
        last = _counts(usage)
        tokens = self._tokens | last
        self.usage = types.Usage(
            input_tokens=tokens.get("input_tokens"),
            output_tokens=last.get("output_tokens"),  # at the start it counts what nobody has seen yet
            cache_read_tokens=tokens.get("cache_read_input_tokens"),
            cache_write_tokens=tokens.get("cache_creation_input_tokens"),
        )


def _counts(usage: object) -> dict[str, int]:
    found = ((name, count(value)) for name, value in mapping(usage).items())
    return {name: value for name, value in found if value is not None}
