"""The recent past of a session that goes on, as a person is reminded of it."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hermes.surfaces.cli.output import cut

if TYPE_CHECKING:
    from hermes.state import SessionDB

NEWEST = 200  # messages looked at: an exchange with many tool calls takes some


def recent_past(db: "SessionDB", session_id: str, *, exchanges: int, width: int) -> list[str]:
    """The last `exchanges` questions with their answers, a line each, and what came before as a count."""
    row = db.get_session(session_id) or {}
    count = int(row.get("message_count") or 0)
    messages = db.get_messages(session_id, limit=NEWEST, offset=max(0, count - NEWEST))
    asked = [number for number, each in enumerate(messages) if each["role"] == "user"]
    first = asked[-exchanges] if exchanges and len(asked) >= exchanges else 0
    lines = [f"{row.get('title') or session_id}, {count} messages"]
    if not exchanges:
        return lines
    return lines + [cut(line, width) for line in _said(messages[first:])]


def _said(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    lines: list[str] = []
    for message in messages:
        text = " ".join(_text(message.get("content")).split())
        if message["role"] == "user" and text:
            lines.append(f"> {text}")
        elif message["role"] == "assistant":
            lines += [f"  {text}"] if text else []
            lines += [f"  → {_name(call)}" for call in message.get("tool_calls") or ()]
    return lines


def _name(call: Mapping[str, Any]) -> str:
    return str(call.get("function", call).get("name"))


def _text(content: Any) -> str:
    if isinstance(content, list):
        parts = (part for part in content if isinstance(part, Mapping))
        return " ".join(str(part.get("text") or f"[{part.get('type')}]") for part in parts)
    return str(content or "")
