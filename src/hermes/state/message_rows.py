"""Messages as `SessionDB` is given and asked for them: as rows to be stored, and as a conversation to be read."""

import json
import re
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from hermes import dicts
from hermes.state.codec import decode_json, encode_json
from hermes.state.queries import Row
from hermes.types import Message

SEARCH_TOOL = "session_search"
JSON_COLUMNS = ("tool_calls", "reasoning_details", "codex_reasoning_items", "codex_message_items")
TEXT_COLUMNS = (
    "tool_name",
    "tool_call_id",
    "finish_reason",
    "reasoning",
    "reasoning_content",
    "platform_message_id",
    "api_content",
    "effect_disposition",
    "status",
)

MEMORY_OPENING, MEMORY_CLOSING = "<memory-context>", "</memory-context>"  # around what was recalled for a message
_MEMORY_CONTEXT = re.compile(rf"{MEMORY_OPENING}.*?{MEMORY_CLOSING}\s*", re.DOTALL)
_NO_CALLS: Row = {"tool_calls": ()}
_ROLES = ("system", "user", "assistant", "tool")
_json_of, _NO_JSON = itemgetter(*JSON_COLUMNS), (None,) * len(JSON_COLUMNS)
SPOKEN_COLUMNS = Message.__struct_fields__  # what a conversation is made of


def message_row(fields: Mapping[str, Any], now: float) -> Row:
    """What a store keeps of a message: its content as it is, JSON columns as text, and a time."""
    row: Row = {"role": fields["role"], "content": fields.get("content")}
    for name in TEXT_COLUMNS:
        value = fields.get(name)
        row[name] = value if value is None or isinstance(value, str) else encode_json(value)
    for name in JSON_COLUMNS:
        value = fields.get(name)
        row[name] = None if value is None or value == [] else _json(value)
    row["timestamp"] = seconds(fields.get("timestamp"), now)
    row["token_count"] = fields.get("token_count")
    for name, default in (("observed", 0), ("active", 1), ("compacted", 0)):
        row[name] = int(fields.get(name, default))
    return row


def call_count(packed: Any) -> int:
    """How many calls the column `tool_calls` holds."""
    parsed = decode_json(packed)
    return len(parsed) if isinstance(parsed, list) else int(bool(parsed))


def seconds(value: Any, default: float) -> float:
    """Epoch seconds of a number, an ISO date, or nothing."""
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str):
        from datetime import datetime  # only imports of foreign rows need it

        try:
            return datetime.fromisoformat(value).timestamp()
        except ValueError:
            return default
    return default


def conversation(sessions: Sequence[Sequence[Row]]) -> list[Row]:
    """The rows of sessions, root first, as OpenAI-style dicts; of each row the `SPOKEN_COLUMNS`.

    A user message that a child repeats is left out, and memory context never shows.
    """
    whole: list[Row] = []
    for rows in sessions:
        whole += _without_replay(whole, [_without_memory(_as_dict(row)) for row in rows])
    return whole


def alternating(messages: list[Row]) -> list[Row]:
    """Neighbours of the same plain role joined, for providers that refuse two in a row."""
    out: list[Row] = []
    for message in messages:
        last = out[-1] if out else None
        if last is not None and _joinable(last, message):
            out[-1] = {**last, "content": f"{last['content']}\n\n{message['content']}"}
        else:
            out.append(message)
    return out


def _json(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return encode_json(value)
    except TypeError:
        return json.dumps(value, default=str)


def _as_dict(row: Row) -> Row:
    """Content that went in as a dict comes back as one."""
    content = row["content"]
    is_plain = (content is None or isinstance(content, str)) and row["role"] in _ROLES
    if is_plain and _json_of(row) == _NO_JSON:
        return dicts.to_dict(Message(**(row | _NO_CALLS)))  # the common case, without the tolerant reader
    message = dicts.to_dict(dicts.from_dict(row))
    if isinstance(content, dict):
        message["content"] = content
    return message


def _without_memory(message: Row) -> Row:
    content = message.get("content")
    if isinstance(content, list):
        return {**message, "content": [_without_memory_in(part, "text") for part in content]}
    return _without_memory_in(message, "content")


def _without_memory_in(holder: Row, name: str) -> Row:
    text = holder.get(name)
    if isinstance(text, str) and MEMORY_OPENING in text:
        return {**holder, name: _MEMORY_CONTEXT.sub("", text)}
    return holder


def _without_replay(before: Sequence[Row], messages: list[Row]) -> list[Row]:
    """`messages` without the user messages that the conversation before them already holds."""
    if not before:
        return messages
    said = [message.get("content") for message in before if message.get("role") == "user"]
    replaying, kept = True, []
    for message in messages:
        if replaying and message.get("role") == "user":
            if message.get("content") in said:
                continue
            replaying = False  # from the first new word on, a repetition is the person's own
        kept.append(message)
    return kept


def _joinable(first: Row, second: Row) -> bool:
    def plain(message: Row) -> Any:
        return isinstance(message.get("content"), str) and not message.get("tool_calls")

    return bool(
        first["role"] == second["role"] and first["role"] in ("user", "assistant") and plain(first) and plain(second)
    )


def is_earlier_search(tool_name: str, tool_calls: Any) -> bool:
    """Whether a message looks for earlier conversations, or is what that found."""
    if tool_name == SEARCH_TOOL:
        return True
    calls = tool_calls if isinstance(tool_calls, list) else ()
    return any(isinstance(one, dict) and _called(one) == SEARCH_TOOL for one in calls)


def _called(call: Mapping[str, Any]) -> object:
    function = call.get("function")
    return function.get("name") if isinstance(function, dict) else call.get("name")
