"""OpenAI Responses, streamed and without storage on the provider's side."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from hermes import types
from hermes.models.endpoint import Endpoint
from hermes.models.wires.answer_reader import AnswerReader, Decoding, SseReading
from hermes.models.wires.answer_values import arguments_text, count, encode, listing, mapping, words
from hermes.models.wires.chat_completions import IMAGE_TYPES, MAX_IMAGE_BYTES, bearer
from hermes.models.wires.classify import provider_error
from hermes.models.wires.content import SEE_PICTURE, Picture, effort_of, images, parts, picture, texts
from hermes.models.wires.transport import HttpModel
from hermes.schemas import Wire as Dialect
from hermes.seams import Body, HttpStream, ModelRequest, Unit

DEFAULT_INSTRUCTIONS = "You are a helpful assistant."
_PHASES = ("commentary", "final_answer")


def codex_responses(endpoint: Endpoint, http: HttpStream) -> HttpModel:
    """The model behind `POST {base_url}/responses`."""
    return HttpModel(endpoint, ResponsesWire(endpoint), http)


class ResponsesWire:
    """`Wire` of OpenAI Responses."""

    key = "responses"
    apart = 1
    dialect: Dialect = "openai"

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def url(self, *, is_stream: bool) -> str:
        return f"{self._endpoint.base_url.rstrip('/')}/responses"

    async def headers(self, url: str, body: Body) -> dict[str, str]:
        return bearer(self._endpoint)

    def head(self, request: ModelRequest) -> bytes:
        options = request.options
        head: types.JsonObject = {
            "model": self._endpoint.model,
            "stream": options.stream,
            "store": False,
            "instructions": request.system or DEFAULT_INSTRUCTIONS,
        }
        if request.session_id:
            head["prompt_cache_key"] = request.session_id[:64]
        if options.max_tokens is not None:
            head["max_output_tokens"] = options.max_tokens
        if options.service_tier:
            head["service_tier"] = options.service_tier
        if (effort := effort_of(options.reasoning)) is not None:
            shown = "low" if effort == "minimal" else effort
            head["reasoning"] = {"effort": shown} if effort == "none" else {"effort": shown, "summary": "auto"}
        head["include"] = ["reasoning.encrypted_content"]
        if request.tools:
            head["tools"] = [_tool(tool) for tool in request.tools]
            head["tool_choice"] = _tool_choice(options.tool_choice)
            head["parallel_tool_calls"] = True
        if options.output_schema is not None:
            from hermes.models.wires.output_format import asked_format  # for who wants data

            head |= asked_format(request, self._endpoint)
        head |= {**self._endpoint.extra_body, **options.extra_body, "input": []}
        return encode(head).removesuffix(b"]}")

    def unit(self, unit: Unit) -> bytes:
        return b",".join(encode(item) for item in _items(unit))

    def marked(self, pieces: list[bytes]) -> list[bytes]:
        return pieces

    def reading(self) -> AnswerReader:
        return _ResponsesReading(self._endpoint)


def _tool(tool: types.ToolDefinition) -> types.JsonObject:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": False,
    }


def _tool_choice(choice: str) -> Any:
    return choice if choice in ("auto", "none", "required") else {"type": "function", "name": choice}


def _items(unit: Unit) -> list[types.JsonObject]:
    first = unit.messages[0]
    if first.role == "assistant":
        return _assistant(first)
    if first.role == "tool":
        return _results(unit)
    content = parts(first.content, _input_text, _input_image)
    if unit.context.strip():
        content.append(_input_text(unit.context))
    return [{"type": "message", "role": "user", "content": content}]


def _assistant(message: types.Message) -> list[types.JsonObject]:
    """Reasoning as it came, words, calls: the order in which the model wrote them."""
    items = own_reasoning(message.codex_reasoning_items)
    text = "\n".join(texts(message.content))
    stored = own_messages(message.codex_message_items)
    if stored and "".join(part["text"] for item in stored for part in item["content"]) == text:
        items += stored
    elif text.strip():
        items.append({"type": "message", "role": "assistant", "content": text})
    items += [
        {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
        for call in message.tool_calls
    ]
    return items or [{"type": "message", "role": "assistant", "content": "(empty)"}]


def _results(unit: Unit) -> list[types.JsonObject]:
    """Outputs of calls; pictures among them follow as a user message, and so does volatile context."""
    items: list[types.JsonObject] = []
    after: list[types.JsonObject] = []
    for message in unit.messages:
        output = "\n".join(texts(message.content)) or SEE_PICTURE
        items.append({"type": "function_call_output", "call_id": message.tool_call_id, "output": output})
        after += [_input_image(part) for part in images(message)]
    if unit.context.strip():
        after.append(_input_text(unit.context))
    return [*items, {"type": "message", "role": "user", "content": after}] if after else items


def _input_text(text: str) -> types.JsonObject:
    return {"type": "input_text", "text": text}


def _input_image(part: types.ImagePart) -> types.JsonObject:
    found = picture(part, types=IMAGE_TYPES, max_bytes=MAX_IMAGE_BYTES, urls=True)
    if not isinstance(found, Picture):
        return _input_text(found)
    url = found.url or f"data:{found.media_type};base64,{found.data}"
    return {
        "type": "input_image",
        "image_url": url,
        "detail": part.detail if part.detail in ("low", "high") else "auto",
    }


def own_reasoning(stored: Any) -> list[types.JsonObject]:
    """Encrypted reasoning items to replay: without ids, each once."""
    found: list[types.JsonObject] = []
    for item in stored if isinstance(stored, list) else ():
        if not isinstance(item, Mapping) or not isinstance(item.get("encrypted_content"), str):
            continue
        summary = item.get("summary")
        texts_of = [
            {"type": "summary_text", "text": part["text"]}
            for part in (summary if isinstance(summary, list) else ())
            if isinstance(part, Mapping) and isinstance(part.get("text"), str)
        ]
        replayed = {"type": "reasoning", "summary": texts_of, "encrypted_content": item["encrypted_content"]}
        if item["encrypted_content"] and replayed not in found:
            found.append(replayed)
    return found


def own_messages(stored: Any) -> list[types.JsonObject]:
    """Message items to replay, with the id and phase the provider gave them."""
    found: list[types.JsonObject] = []
    for item in stored if isinstance(stored, list) else ():
        if not isinstance(item, Mapping) or not isinstance(item.get("id"), str) or not item["id"]:
            continue
        content = item.get("content")
        parts = [
            {"type": "output_text", "text": part["text"], "annotations": []}
            for part in (content if isinstance(content, list) else ())
            if isinstance(part, Mapping) and isinstance(part.get("text"), str) and part["text"].strip()
        ]
        if parts:
            phase = {"phase": item["phase"]} if item.get("phase") in _PHASES else {}
            head = {"type": "message", "role": "assistant", "id": item["id"], "status": "completed"}
            found.append({**head, "content": parts, **phase})
    return found


# -- answers -----------------------------------------------------------------------------------------------------


_NOTHING = msgspec.Raw(b"null")


class _ResponsesEvent(Struct, frozen=True, gc=False):
    type: str = ""
    output_index: int = 0
    delta: str | None = None
    item: msgspec.Raw = _NOTHING  # decoded only where it is needed: the first events repeat the whole request
    response: msgspec.Raw = _NOTHING
    message: Any = None
    code: Any = None
    error: Any = None


class _ResponsesReading(SseReading):
    decoding = Decoding(_ResponsesEvent)

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint)
        self._items: dict[int, Mapping[str, Any]] = {}

    def take(self, events: Iterable[_ResponsesEvent]) -> None:
        for event in events:
            kind = event.type
            if kind in ("response.output_text.delta", "response.refusal.delta"):
                self.say(event.delta or "")
            elif kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
                self.think(event.delta or "")
            elif kind == "response.function_call_arguments.delta":
                self.call(event.output_index, arguments=event.delta or "")
            elif kind in ("response.output_item.added", "response.output_item.done"):
                item = mapping(self.decode(event.item))
                if kind.endswith("done"):
                    self.keep(len(memoryview(event.item)))
                self._item(event.output_index, item, is_done=kind.endswith("done"))
            elif kind in ("response.completed", "response.incomplete", "response.failed", "response.cancelled"):
                self._ended(mapping(self.decode(event.response)), kind.removeprefix("response."))
                return
            elif kind == "error":
                raise provider_error(
                    event.error or {"message": event.message, "code": event.code}, self.provider, self.asked
                )

    def take_whole(self, body: Any) -> None:
        self._ended(body, body.get("status"))

    def extras(self) -> types.JsonObject:
        items = [dict(item) for _, item in sorted(self._items.items())]
        reasoning = [item for item in items if item.get("type") == "reasoning" and item.get("encrypted_content")]
        said = [item for item in items if item.get("type") == "message" and item.get("id")]
        return {"codex_reasoning_items": reasoning or None, "codex_message_items": said or None}

    def _item(self, place: int, item: Mapping[str, Any], *, is_done: bool) -> None:
        if is_done:
            self._items[place] = item
        if item.get("type") != "function_call":
            return
        known = place in self.calls and bool(self.calls[place].arguments)
        self.call(
            place,
            call_id=words(item.get("call_id")) or words(item.get("id")),
            name=words(item.get("name")),
            arguments="" if known else arguments_text(item.get("arguments")),
        )
        if item_id := words(item.get("id")):
            self.calls[place].provider_data = {"response_item_id": item_id}

    def _ended(self, response: Mapping[str, Any], told: object) -> None:
        """The last object of an answer, and the status that came with it, should it have none itself."""
        status = response.get("status") or told
        if status in ("failed", "cancelled"):
            raise provider_error(response.get("error") or {"message": f"status {status}"}, self.provider, self.asked)
        self.served_by(words(response.get("model")))
        self._take_unstreamed(response.get("output"))
        self._count(response.get("usage"))
        self._finished(status, response.get("incomplete_details"))
        self.is_complete = status is not None

    def _take_unstreamed(self, output: Any) -> None:
        """What the final object holds and no event has told before: all of it, when nothing was streamed."""
        had_text, had_thought = bool(self.text), bool(self.thought)
        for place, item in enumerate(map(mapping, listing(output))):
            if not item or place in self._items:
                continue
            self._item(place, item, is_done=True)
            parts = item.get("content") if item.get("type") == "message" else item.get("summary")
            for part in map(mapping, listing(parts)):
                text = words(part.get("text")) or words(part.get("refusal"))
                if item.get("type") == "message" and not had_text:
                    self.say(text)
                elif item.get("type") == "reasoning" and not had_thought:
                    self.think(text)

    def _finished(self, status: Any, details: Any) -> None:
        why = mapping(details).get("reason")
        said = any(text.strip() for text in self.text)
        phases = {words(item.get("phase")) for item in self._items.values() if item.get("type") == "message"}
        if self.calls:
            self.finish = "length" if status == "incomplete" else "tool_calls"
        elif why == "content_filter":
            self.finish = "content_filter"
        elif status == "incomplete":
            self.finish = "length" if said else "incomplete"
        elif (self.thought or self._items) and (not said or phases == {"commentary"}):
            self.finish = "incomplete"
        else:
            self.finish = "stop"

    def _count(self, raw: Any) -> None:
        if not isinstance(raw, Mapping):
            return
        read, written = mapping(raw.get("input_tokens_details")), mapping(raw.get("output_tokens_details"))
        prompt, cached = count(raw.get("input_tokens")), count(read.get("cached_tokens"))
        self.usage = types.Usage(
            input_tokens=None if prompt is None else max(0, prompt - (cached or 0)),
            output_tokens=count(raw.get("output_tokens")),
            cache_read_tokens=cached,
            reasoning_tokens=count(written.get("reasoning_tokens")),
        )
