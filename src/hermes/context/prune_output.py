"""Old tool output, pictures and long arguments give way before any word is summed up."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from hermes.types import Content, ImagePart, Message, Part, TextPart, ToolCall, text_of

LONG_CHARS = 200
LONG_ARGUMENTS = 500
PICTURE = "[a picture was here]"
_TELLING = ("path", "command", "pattern", "query", "url", "name", "action")
_HANDLE = re.compile(r"hermes://result/[A-Za-z0-9_-]{1,80}")


def pruned(messages: Sequence[Message], keep_from: int) -> list[Message]:
    """The same messages, those before `keep_from` without bulk. What people and models said stays, word for word."""
    calls = {call.id: call for message in messages for call in message.tool_calls}
    newest = _newest_outputs(messages)
    out = list(messages)
    for place, message in enumerate(messages):
        if place >= keep_from:
            break
        if message.role == "tool" and newest.get(text_of(message.content), place) != place:
            out[place] = replace(message, content="[the same output came again later; see there]")
        else:
            out[place] = _pruned_message(message, calls)
    return out


def _newest_outputs(messages: Sequence[Message]) -> dict[str, int]:
    texts = ((text_of(message.content), place) for place, message in enumerate(messages) if message.role == "tool")
    return {text: place for text, place in texts if len(text) >= LONG_CHARS}


def _pruned_message(message: Message, calls: Mapping[str, ToolCall]) -> Message:
    if message.role == "tool":
        text = text_of(message.content)
        if len(text) > LONG_CHARS:
            return replace(message, content=_told(message, text, calls.get(message.tool_call_id or "")))
    if message.tool_calls:
        shortened = tuple(_shortened(call) for call in message.tool_calls)
        message = replace(message, tool_calls=shortened)
    return replace(message, content=_without_pictures(message.content)) if message.content else message


def _told(message: Message, text: str, call: ToolCall | None) -> str:
    """One line in place of an output: which tool, on what, how it ended, how large it was."""
    body = _object(text)
    facts = [_key_argument(call)] if call else []
    if isinstance(body.get("exit_code"), int):
        facts.append(f"exit code {body['exit_code']}")
    if message.status not in (None, "ok"):
        facts.append(str(message.status))
    facts.append(f"{len(text)} characters, {text.count(chr(10)) + text.count(chr(92) + 'n') + 1} lines")
    kept = sorted(set(_HANDLE.findall(text)))
    where = f"; the whole is in {', '.join(kept)}" if kept else ""
    name = message.tool_name or (call.name if call else "tool")
    return f"[{name}: {'; '.join(fact for fact in facts if fact)}; output left out{where}]"


def _key_argument(call: ToolCall) -> str:
    arguments = _object(call.arguments)
    wanted = [arguments[name] for name in _TELLING if name in arguments] or list(arguments.values())
    found = next((value for value in wanted if isinstance(value, str) and value.strip()), "")
    return " ".join(found.split())[:120]


def _shortened(call: ToolCall) -> ToolCall:
    """Long texts inside long arguments are cut; the arguments stay a JSON object."""
    if len(call.arguments) <= LONG_ARGUMENTS or not (arguments := _object(call.arguments)):
        return call
    short = json.dumps(_cut(arguments), ensure_ascii=False)
    return replace(call, arguments=short) if len(short) < len(call.arguments) else call


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > LONG_CHARS:
        return f"{value[:LONG_CHARS]} [... {len(value) - LONG_CHARS} more characters]"
    if isinstance(value, dict):
        return {key: _cut(item) for key, item in value.items()}
    return [_cut(item) for item in value] if isinstance(value, list) else value


def _without_pictures(content: Content | None) -> Content | None:
    if not isinstance(content, tuple) or not any(isinstance(part, ImagePart) for part in content):
        return content
    parts: list[Part] = [TextPart(PICTURE) if isinstance(part, ImagePart) else part for part in content]
    return tuple(parts)


def _object(text: str) -> dict[str, Any]:
    """The JSON object in `text`; an empty one when it is none."""
    try:
        found = json.loads(text) if text.lstrip().startswith("{") else None
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
