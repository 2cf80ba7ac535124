"""Anthropic Messages, from the server's side."""

from typing import Any

import msgspec

from hermes.testing.server.chat import TOOL_NAME
from hermes.testing.server.wire import ErrorAnswer, Frames, WireAnswer, sse, unanswered
from hermes.types import FinishReason, JsonObject

_STOP: dict[FinishReason, str] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
    "incomplete": "pause_turn",
}
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class MessagesServerWire:
    """`POST .../v1/messages`."""

    content_type = "text/event-stream"

    def mistake(self, body: JsonObject) -> str | None:
        messages = body.get("messages")
        if not body.get("model"):
            return "model: field required"
        if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
            return "max_tokens: field required"
        if not isinstance(messages, list) or not messages:
            return "messages: at least one message is required"
        for tool in body.get("tools") or ():
            if not TOOL_NAME.fullmatch(tool.get("name", "")) or "input_schema" not in tool:
                return f"tools: {tool.get('name')!r} needs a valid name and an input_schema"
        return _messages_mistake(messages)

    def whole(self, answer: WireAnswer) -> JsonObject:
        return {
            **_head(answer),
            "content": [_finished_block(block) for block in _blocks(answer)],
            "stop_reason": _STOP[answer.reply.finish_reason],
            "stop_sequence": None,
            **_usage(answer),
        }

    def frames(self, answer: WireAnswer) -> Frames:
        usage = _usage(answer)
        if isinstance(first := usage.get("usage"), dict):
            first = {**first, "output_tokens": 1}
        start = {**_head(answer), "content": [], "stop_reason": None, "stop_sequence": None}
        content = [_event("message_start", message={**start, **({"usage": first} if usage else {})})]
        for index, block in enumerate(_blocks(answer)):
            content.append(_event("content_block_start", index=index, content_block=block["start"]))
            content += [_event("content_block_delta", index=index, delta=delta) for delta in block["deltas"]]
            content.append(_event("content_block_stop", index=index))
        delta = {"stop_reason": _STOP[answer.reply.finish_reason], "stop_sequence": None}
        last = {"usage": {"output_tokens": usage["usage"].get("output_tokens")}} if usage else {}
        return Frames(content, [_event("message_delta", delta=delta, **last), _event("message_stop")])

    def error(self, status: int, kind: str, message: str) -> ErrorAnswer:
        del kind
        error = {"type": _TYPES.get(status, "api_error"), "message": message}
        return ErrorAnswer(msgspec.json.encode({"type": "error", "error": error}), {})


def _event(kind: str, **fields: Any) -> bytes:
    return sse({"type": kind, **fields}, kind)


def _head(answer: WireAnswer) -> JsonObject:
    return {"id": f"msg_{answer.number}", "type": "message", "role": "assistant", "model": answer.model}


def _blocks(answer: WireAnswer) -> list[JsonObject]:
    """Each content block as it starts, and the deltas that fill it."""
    blocks: list[JsonObject] = []
    if answer.reply.thinking:
        deltas: list[JsonObject] = [
            {"type": "thinking_delta", "thinking": piece} for piece in answer.pieces(answer.reply.thinking)
        ]
        deltas.append({"type": "signature_delta", "signature": f"sig-{answer.number}"})
        blocks.append({"start": {"type": "thinking", "thinking": "", "signature": ""}, "deltas": deltas})
    if answer.reply.text:
        deltas = [{"type": "text_delta", "text": piece} for piece in answer.pieces(answer.reply.text)]
        blocks.append({"start": {"type": "text", "text": ""}, "deltas": deltas})
    for call in answer.calls:
        start = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in answer.pieces(call.arguments)]
        blocks.append({"start": start, "deltas": deltas})
    return blocks


def _finished_block(block: JsonObject) -> JsonObject:
    finished = dict(block["start"])
    for delta in block["deltas"]:
        if delta["type"] == "input_json_delta":
            finished["raw"] = finished.get("raw", "") + delta["partial_json"]
        else:
            finished |= {key: finished[key] + value for key, value in delta.items() if key != "type"}
    if "raw" in finished:
        finished["input"] = msgspec.json.decode(finished.pop("raw"))
    return finished


def _usage(answer: WireAnswer) -> JsonObject:
    if answer.raw_usage is not None:
        return {"usage": answer.raw_usage}
    if answer.usage is None:
        return {}
    return {
        "usage": {
            "input_tokens": answer.usage.input_tokens or 0,
            "cache_creation_input_tokens": answer.usage.cache_write_tokens or 0,
            "cache_read_input_tokens": answer.usage.cache_read_tokens or 0,
            "output_tokens": answer.usage.output_tokens or 0,
        }
    }


def _messages_mistake(messages: list[JsonObject]) -> str | None:
    open_calls: list[str] = []
    for position, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        where = f"messages.{position}"
        if role not in {"user", "assistant"}:
            return f"{where}.role: {role!r} is neither user nor assistant"
        if position == 0 and role != "user":
            return "messages: first message must use the user role"
        if not content and not (role == "assistant" and position == len(messages) - 1):
            return f"{where}: all messages must have non-empty content"
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
        if any(block.get("type") == "text" and not block.get("text", "").strip() for block in blocks):
            return f"{where}: text content blocks must be non-empty"
        results = [str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"]
        if wrong := unanswered(open_calls, results):
            return f"{where}: {wrong}"
        open_calls = [str(block.get("id")) for block in blocks if block.get("type") == "tool_use"]
    return f"the last message leaves {open_calls!r} without a tool_result" if open_calls else None
