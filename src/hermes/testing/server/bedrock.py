"""Bedrock Converse and ConverseStream, from the server's side; the stream is AWS's binary event framing."""

import struct
import zlib

import msgspec

from hermes.testing.server.wire import ErrorAnswer, Frames, WireAnswer, unanswered
from hermes.types import FinishReason, JsonObject

_STOP: dict[FinishReason, str] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "content_filtered",
    "incomplete": "max_tokens",
}
_ERRORS = {
    401: "UnrecognizedClientException",
    404: "ResourceNotFoundException",
    429: "ThrottlingException",
    500: "InternalServerException",
    529: "ServiceUnavailableException",
}


class BedrockWire:
    """`POST /model/{id}/converse` and `/converse-stream`."""

    content_type = "application/vnd.amazon.eventstream"

    def mistake(self, body: JsonObject) -> str | None:
        messages = body.get("messages")
        if not isinstance(messages, list) or not messages:
            return "messages: at least one message is required"
        open_calls: list[str] = []
        uses_tools = False
        for position, message in enumerate(messages):
            blocks = message.get("content") or []
            if message.get("role") != ("user", "assistant")[position % 2]:
                return f"messages[{position}]: roles must alternate between user and assistant, user first"
            if not blocks:
                return f"messages[{position}]: content is empty"
            if any("text" in block and not block["text"] for block in blocks):
                return f"messages[{position}]: a text block is blank"
            results = [str(block["toolResult"].get("toolUseId")) for block in blocks if "toolResult" in block]
            if wrong := unanswered(open_calls, results):
                return f"messages[{position}]: {wrong}"
            open_calls = [str(block["toolUse"].get("toolUseId")) for block in blocks if "toolUse" in block]
            uses_tools = uses_tools or bool(open_calls or results)
        if len(messages) % 2 == 0:
            return "the conversation must end with a user message"
        return "toolConfig must be set when toolUse blocks are" if uses_tools and not body.get("toolConfig") else None

    def whole(self, answer: WireAnswer) -> JsonObject:
        content: list[JsonObject] = []
        if answer.reply.thinking:
            text = {"text": answer.reply.thinking, "signature": f"sig-{answer.number}"}
            content.append({"reasoningContent": {"reasoningText": text}})
        if answer.reply.text:
            content.append({"text": answer.reply.text})
        for call in answer.calls:
            arguments = msgspec.json.decode(call.arguments)
            content.append({"toolUse": {"toolUseId": call.id, "name": call.name, "input": arguments}})
        return {
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": _STOP[answer.reply.finish_reason],
            "metrics": {"latencyMs": 1},
            **_usage(answer),
        }

    def frames(self, answer: WireAnswer) -> Frames:
        content = [event_message("messageStart", {"role": "assistant"})]
        for index, block in enumerate(_blocks(answer)):
            place = {"contentBlockIndex": index}
            if start := block["start"]:
                content.append(event_message("contentBlockStart", {**place, "start": start}))
            content += [event_message("contentBlockDelta", {**place, "delta": delta}) for delta in block["deltas"]]
            content.append(event_message("contentBlockStop", place))
        ending = [event_message("messageStop", {"stopReason": _STOP[answer.reply.finish_reason]})]
        if usage := _usage(answer):
            ending.append(event_message("metadata", {**usage, "metrics": {"latencyMs": 1}}))
        return Frames(content, ending)

    def error(self, status: int, kind: str, message: str) -> ErrorAnswer:
        del kind
        name = _ERRORS.get(status, "ValidationException" if status < 500 else "InternalServerException")
        return ErrorAnswer(msgspec.json.encode({"message": message}), {"x-amzn-errortype": name})


def event_message(event: str, payload: JsonObject) -> bytes:
    """One message of `application/vnd.amazon.eventstream`: prelude, headers, payload, each guarded by a CRC-32."""
    headers = b"".join(
        _string_header(name, value)
        for name, value in (
            (":event-type", event),
            (":content-type", "application/json"),
            (":message-type", "event"),
        )
    )
    body = msgspec.json.encode(payload)
    prelude = struct.pack("!II", 16 + len(headers) + len(body), len(headers))
    message = prelude + struct.pack("!I", zlib.crc32(prelude)) + headers + body
    return message + struct.pack("!I", zlib.crc32(message))


def _string_header(name: str, value: str) -> bytes:
    string_type = 7
    return struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", string_type, len(value)) + value.encode()


def _blocks(answer: WireAnswer) -> list[JsonObject]:
    blocks: list[JsonObject] = []
    if answer.reply.thinking:
        deltas: list[JsonObject] = [
            {"reasoningContent": {"text": piece}} for piece in answer.pieces(answer.reply.thinking)
        ]
        deltas.append({"reasoningContent": {"signature": f"sig-{answer.number}"}})
        blocks.append({"start": None, "deltas": deltas})
    if answer.reply.text:
        blocks.append({"start": None, "deltas": [{"text": piece} for piece in answer.pieces(answer.reply.text)]})
    for call in answer.calls:
        start = {"toolUse": {"toolUseId": call.id, "name": call.name}}
        deltas = [{"toolUse": {"input": piece}} for piece in answer.pieces(call.arguments)]
        blocks.append({"start": start, "deltas": deltas})
    return blocks


def _usage(answer: WireAnswer) -> JsonObject:
    if answer.raw_usage is not None:
        return {"usage": answer.raw_usage}
    if answer.usage is None:
        return {}
    read, written = answer.usage.cache_read_tokens or 0, answer.usage.cache_write_tokens or 0
    prompt, output = answer.usage.input_tokens or 0, answer.usage.output_tokens or 0
    return {
        "usage": {
            "inputTokens": prompt,
            "outputTokens": output,
            "totalTokens": prompt + output + read + written,
            "cacheReadInputTokens": read,
            "cacheWriteInputTokens": written,
        }
    }
