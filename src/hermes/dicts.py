"""Messages as the OpenAI-style dicts of the public contract, both ways, losing nothing."""

from collections.abc import Mapping
from typing import Any

import msgspec

from hermes.types import Content, ImagePart, JsonObject, Message, OpaquePart, Part, TextPart, ToolCall

_PLAIN_FIELDS = (
    "tool_call_id",
    "tool_name",
    "status",
    "finish_reason",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "codex_reasoning_items",
    "codex_message_items",
    "platform_message_id",
    "token_count",
    "timestamp",
)
_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_STATUSES = ("ok", "failed", "cancelled", "unknown")


def to_dict(message: Message) -> JsonObject:
    """The contract's form: `content` is text or a list of parts, `tool_calls` nests `function`."""
    out: JsonObject = msgspec.to_builtins(message)
    out.pop("id", None)
    if not isinstance(message.content, str):
        out = {"role": message.role, "content": None} | out  # in the order in which people write them
        out["content"] = content_to_json(message.content)
    if message.tool_calls:
        out["tool_calls"] = [call_to_dict(call) for call in message.tool_calls]
    if message.role == "tool" and message.tool_name:
        out["name"] = message.tool_name
    return out


def storable(text: str) -> str:
    """`text` without lone surrogates, which can be neither stored nor sent."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def from_dict(raw: Mapping[str, Any]) -> Message:
    """A message from whatever a caller kept; unknown roles are read as user text, unknown keys are dropped."""
    plain = {name: raw[name] for name in _PLAIN_FIELDS if raw.get(name) is not None}
    for name in ("tool_call_id", "tool_name", "finish_reason", "reasoning", "reasoning_content", "platform_message_id"):
        if name in plain and not isinstance(plain[name], str):
            plain[name] = _as_text(plain[name])
    if plain.get("status") not in _STATUSES:
        plain.pop("status", None)
    for name in ("token_count", "timestamp"):
        if not isinstance(plain.get(name), int | float):
            plain.pop(name, None)
    if "token_count" in plain:
        plain["token_count"] = int(plain["token_count"])
    role = _ROLES.get(str(raw.get("role")), "user")
    if role == "tool" and "tool_name" not in plain and isinstance(raw.get("name"), str):
        plain["tool_name"] = raw["name"]
    calls = raw.get("tool_calls")
    return Message(
        role=role,  # type: ignore[arg-type]  # _ROLES holds nothing else
        content=content_from_json(raw.get("content")),
        tool_calls=tuple(call_from_dict(call) for call in calls) if isinstance(calls, list | tuple) else (),
        **plain,
    )


def call_to_dict(call: ToolCall) -> JsonObject:
    """One call as `{"id", "type": "function", "function": {"name", "arguments"}}`, provider fields beside it."""
    out: JsonObject = dict(call.provider_data or {})
    out |= {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
    return out


def call_from_dict(raw: Any) -> ToolCall:
    """One call from the contract's form; arguments given as an object are serialised, other rubbish is kept as text."""
    if not isinstance(raw, Mapping):
        return ToolCall(id="", name="", arguments=_as_text(raw))
    function = raw.get("function")
    function = function if isinstance(function, Mapping) else raw
    extra = {
        str(key): value for key, value in raw.items() if key not in ("id", "type", "function", "name", "arguments")
    }
    return ToolCall(
        id=_as_text(raw.get("id") or raw.get("call_id") or ""),
        name=_as_text(function.get("name") or ""),
        arguments=_as_text(function.get("arguments", "{}")),
        provider_data=extra or None,
    )


def content_to_json(content: Content | None) -> Any:
    """Text stays text; parts become the contract's part dicts."""
    if content is None or isinstance(content, str):
        return content
    return [_part_to_dict(part) for part in content]


def content_from_json(raw: Any) -> Content | None:
    """The inverse of `content_to_json`; anything that is neither text nor a list becomes its JSON text."""
    if raw is None or isinstance(raw, str):
        return raw
    if isinstance(raw, list | tuple):
        return tuple(_part_from_dict(part) for part in raw)
    return _as_text(raw)


def _part_to_dict(part: Part) -> JsonObject:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, OpaquePart):
        return part.raw
    image = {"url": part.url}
    if part.detail:
        image["detail"] = part.detail
    out: JsonObject = {"type": "image_url", "image_url": image}
    if part.media_type:
        out["media_type"] = part.media_type
    return out


def _part_from_dict(raw: Any) -> Part:
    if isinstance(raw, str):
        return TextPart(raw)
    if not isinstance(raw, Mapping):
        return TextPart(_as_text(raw))
    if raw.get("type") in ("text", "input_text", "output_text") and isinstance(raw.get("text"), str):
        return TextPart(raw["text"])
    image = raw.get("image_url")
    if raw.get("type") == "image_url" and isinstance(image, Mapping) and isinstance(image.get("url"), str):
        return ImagePart(image["url"], str(raw.get("media_type") or ""), str(image.get("detail") or ""))
    return OpaquePart({str(key): value for key, value in raw.items()})


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError):
        return repr(value)
