"""Chat completions, from the server's side."""

import re

import msgspec

from hermes.testing.server.wire import ErrorAnswer, Frames, WireAnswer, openai_error, sse, unanswered
from hermes.typed import from_json
from hermes.types import JsonObject, Usage

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ROLES = {"system", "developer", "user", "assistant", "tool"}


class ChatServerWire:
    """`POST .../chat/completions`."""

    content_type = "text/event-stream"

    def mistake(self, body: JsonObject) -> str | None:
        messages = body.get("messages")
        if not body.get("model"):
            return "you must provide a model parameter"
        if not isinstance(messages, list) or not messages:
            return "messages must be a non-empty array"
        return _tools_mistake(body.get("tools")) or _messages_mistake(messages)

    def whole(self, answer: WireAnswer) -> JsonObject:
        message: JsonObject = {"role": "assistant", "content": answer.reply.text or None}
        if answer.reply.thinking:
            message["reasoning_content"] = answer.reply.thinking
        if answer.calls:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in answer.calls
            ]
        choice = {"index": 0, "message": message, "finish_reason": _finish(answer)}
        return {**_head(answer, "chat.completion"), "choices": [choice], **_usage(answer)}

    def frames(self, answer: WireAnswer) -> Frames:
        head = _head(answer, "chat.completion.chunk")

        def delta(fields: JsonObject, finish: str | None = None) -> bytes:
            return sse({**head, "choices": [{"index": 0, "delta": fields, "finish_reason": finish}]})

        content = [delta({"role": "assistant", "content": ""})]
        content += [delta({"reasoning_content": piece}) for piece in answer.pieces(answer.reply.thinking)]
        content += [delta({"content": piece}) for piece in answer.pieces(answer.reply.text)]
        for index, call in enumerate(answer.calls):
            started = {"index": index, "id": call.id, "type": "function", "function": {"name": call.name}}
            started["function"] = {"name": call.name, "arguments": ""}
            content.append(delta({"tool_calls": [started]}))
            content += [
                delta({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
                for piece in answer.pieces(call.arguments)
            ]
        ending = [delta({}, _finish(answer))]
        if usage := _usage(answer):
            ending.append(sse({**head, "choices": [], **usage}))
        return Frames(content, [*ending, b"data: [DONE]\n\n"])

    def error(self, status: int, kind: str, message: str) -> ErrorAnswer:
        return openai_error(status, kind, message)


def _head(answer: WireAnswer, kind: str) -> JsonObject:
    return {"id": f"chatcmpl-{answer.number}", "object": kind, "created": 1_700_000_000, "model": answer.model}


def _finish(answer: WireAnswer) -> str:
    reason = answer.reply.finish_reason
    return "length" if reason == "incomplete" else reason


def _usage(answer: WireAnswer) -> JsonObject:
    if answer.raw_usage is not None:
        return {"usage": answer.raw_usage}
    return {} if answer.usage is None else {"usage": _chat_usage(answer.usage)}


def _chat_usage(usage: Usage) -> JsonObject:
    prompt, output = usage.prompt_tokens or 0, usage.output_tokens or 0
    report: JsonObject = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
    details = {"cached_tokens": usage.cache_read_tokens, "cache_write_tokens": usage.cache_write_tokens}
    if known := {name: count for name, count in details.items() if count is not None}:
        report["prompt_tokens_details"] = known
    if usage.reasoning_tokens is not None:
        report["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    return report


def _tools_mistake(tools: object) -> str | None:
    if tools is None:
        return None
    if not isinstance(tools, list) or not tools:
        return "tools must be a non-empty array when it is given"
    names = [tool.get("function", {}).get("name", "") for tool in tools]
    for name in names:
        if not TOOL_NAME.fullmatch(name):
            return f"invalid tools[].function.name: {name!r}"
    return None if len(set(names)) == len(names) else "tool names must be unique"


def _messages_mistake(messages: list[JsonObject]) -> str | None:
    position = 0
    while position < len(messages):
        message = messages[position]
        where = f"messages[{position}]"
        if message.get("role") not in _ROLES:
            return f"{where}: invalid role {message.get('role')!r}"
        if message["role"] == "tool":
            return f"{where}: a tool message must follow a message with tool_calls"
        called = message.get("tool_calls")
        if message["role"] != "assistant" and message.get("content") is None:
            return f"{where}: content is missing"
        if message["role"] == "assistant" and called is None and message.get("content") is None:
            return f"{where}: an assistant message needs content or tool_calls"
        position += 1
        if called is not None:
            results = []
            while position < len(messages) and messages[position].get("role") == "tool":
                results.append(str(messages[position].get("tool_call_id")))
                position += 1
            if wrong := _calls_mistake(called) or unanswered([call["id"] for call in called], results):
                return f"{where}: {wrong}"
    return None


def _calls_mistake(called: object) -> str | None:
    if not isinstance(called, list) or not called:
        return "tool_calls must be a non-empty array"
    for call in called:
        function = call.get("function", {})
        if not call.get("id") or not TOOL_NAME.fullmatch(function.get("name", "")):
            return f"a call needs an id and a valid name: {call!r}"
        try:
            from_json(function.get("arguments", ""), dict)
        except (msgspec.DecodeError, TypeError):
            return f"arguments of {call['id']!r} are not a JSON object"
    return None
