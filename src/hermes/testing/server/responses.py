"""OpenAI Responses, from the server's side."""

from collections.abc import Callable
from typing import Any

from hermes.testing.server.chat import TOOL_NAME
from hermes.testing.server.wire import ErrorAnswer, Frames, WireAnswer, openai_error, sse, unanswered
from hermes.types import JsonObject

_ITEM_TYPES = {"message", "function_call", "function_call_output", "reasoning", "item_reference"}
_Event = Callable[..., bytes]


class ResponsesServerWire:
    """`POST .../responses`."""

    content_type = "text/event-stream"

    def mistake(self, body: JsonObject) -> str | None:
        items = body.get("input")
        if not body.get("model"):
            return "missing required parameter: 'model'"
        if isinstance(items, str) and items:
            return None
        if not isinstance(items, list) or not items:
            return "missing required parameter: 'input'"
        for tool in body.get("tools") or ():
            if tool.get("type") == "function" and not TOOL_NAME.fullmatch(tool.get("name", "")):
                return f"invalid tools[].name: {tool.get('name')!r}"
        return _items_mistake(items)

    def whole(self, answer: WireAnswer) -> JsonObject:
        return _response(answer, _items(answer))

    def frames(self, answer: WireAnswer) -> Frames:
        number = 0

        def event(kind: str, **fields: Any) -> bytes:
            nonlocal number
            number += 1
            return sse({"type": kind, "sequence_number": number - 1, **fields}, kind)

        started = {**_response(answer, []), "status": "in_progress"}
        started.pop("usage", None)
        content = [event("response.created", response=started), event("response.in_progress", response=started)]
        items = _items(answer)
        for index, item in enumerate(items):
            content += _item_events(answer, item, index, event)
        status = _response(answer, items)
        return Frames(content, [event(f"response.{status['status']}", response=status)])

    def error(self, status: int, kind: str, message: str) -> ErrorAnswer:
        return openai_error(status, kind, message)


def _response(answer: WireAnswer, items: list[JsonObject]) -> JsonObject:
    cut = {"length": "max_output_tokens", "incomplete": "max_output_tokens", "content_filter": "content_filter"}
    reason = cut.get(answer.reply.finish_reason)
    return {
        "id": f"resp_{answer.number}",
        "object": "response",
        "created_at": 1_700_000_000,
        "model": answer.model,
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "error": None,
        "output": items,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        **_usage(answer),
    }


def _items(answer: WireAnswer) -> list[JsonObject]:
    items: list[JsonObject] = []
    if answer.reply.thinking:
        summary = [{"type": "summary_text", "text": answer.reply.thinking}]
        secret = f"enc-{answer.number}"
        items.append(
            {"type": "reasoning", "id": f"rs_{answer.number}", "summary": summary, "encrypted_content": secret}
        )
    if answer.reply.text:
        part = {"type": "output_text", "text": answer.reply.text, "annotations": []}
        head = {"type": "message", "id": f"msg_{answer.number}", "role": "assistant", "status": "completed"}
        items.append({**head, "content": [part]})
    for index, call in enumerate(answer.calls):
        head = {"type": "function_call", "id": f"fc_{answer.number}_{index}", "status": "completed"}
        items.append({**head, "call_id": call.id, "name": call.name, "arguments": call.arguments})
    return items


def _item_events(answer: WireAnswer, item: JsonObject, index: int, event: _Event) -> list[bytes]:
    place = {"item_id": item["id"], "output_index": index}
    if item["type"] == "message":
        text, empty = item["content"][0]["text"], {"type": "output_text", "text": "", "annotations": []}
        place["content_index"] = 0
        opened = {**item, "status": "in_progress", "content": []}
        return [
            event("response.output_item.added", output_index=index, item=opened),
            event("response.content_part.added", **place, part=empty),
            *(event("response.output_text.delta", **place, delta=piece) for piece in answer.pieces(text)),
            event("response.output_text.done", **place, text=text),
            event("response.content_part.done", **place, part=item["content"][0]),
            event("response.output_item.done", output_index=index, item=item),
        ]
    if item["type"] == "function_call":
        kind, text, opened = "function_call_arguments", item["arguments"], {**item, "arguments": ""}
        done = {"arguments": text}
    else:
        kind, text, opened = "reasoning_summary_text", item["summary"][0]["text"], {**item, "summary": []}
        place["summary_index"] = 0
        done = {"text": text}
    return [
        event("response.output_item.added", output_index=index, item=opened),
        *(event(f"response.{kind}.delta", **place, delta=piece) for piece in answer.pieces(text)),
        event(f"response.{kind}.done", **place, **done),
        event("response.output_item.done", output_index=index, item=item),
    ]


def _usage(answer: WireAnswer) -> JsonObject:
    if answer.raw_usage is not None:
        return {"usage": answer.raw_usage}
    if answer.usage is None:
        return {"usage": None}
    prompt, output = answer.usage.prompt_tokens or 0, answer.usage.output_tokens or 0
    return {
        "usage": {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": answer.usage.cache_read_tokens or 0},
            "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": answer.usage.reasoning_tokens or 0},
            "total_tokens": prompt + output,
        }
    }


def _items_mistake(items: list[JsonObject]) -> str | None:
    called: list[str] = []
    results: list[str] = []
    for position, item in enumerate(items):
        kind = item.get("type", "message")
        if kind not in _ITEM_TYPES:
            return f"input[{position}].type: invalid value {kind!r}"
        if kind == "message" and (not item.get("role") or item.get("content") is None):
            return f"input[{position}]: a message needs role and content"
        if kind == "function_call":
            called.append(str(item.get("call_id")))
        if kind == "function_call_output":
            results.append(str(item.get("call_id")))
            if results[-1] not in called:
                return f"input[{position}]: no tool call found for function call output {results[-1]!r}"
    return unanswered(called, results)
