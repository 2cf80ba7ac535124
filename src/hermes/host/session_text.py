"""What was said in sessions, in words: transcripts as pages, last exchanges, titles, ages and figures."""

import json
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.config import paths

if TYPE_CHECKING:
    from hermes.state import SessionDB

Row = Mapping[str, Any]
TELLING = ("command", "path", "pattern", "query", "url", "code", "goal")
MESSAGES_AN_EXCHANGE = 12  # a turn has many calls; more than this is left out rather than read


def last_messages(db: "SessionDB", session_id: str, exchanges: int) -> list[dict[str, Any]]:
    """What people and the model said in the last `exchanges`; the cost does not grow with the session."""
    most, count = exchanges * MESSAGES_AN_EXCHANGE, db.message_count(session_id)
    rows = db.get_messages(session_id, limit=most, offset=max(0, count - most)) if most else []
    spoken = [row for row in rows if row["role"] in ("user", "assistant") and (said(row).strip() or calls_of(row))]
    starts = [place for place, row in enumerate(spoken) if row["role"] == "user"]
    return spoken[starts[-exchanges] :] if len(starts) >= exchanges else spoken


def said(message: Row) -> str:
    """The words of a message; what is no text stands as its kind."""
    content = message.get("content")
    if isinstance(content, list):
        parts = (part for part in content if isinstance(part, Mapping))
        return "\n".join(str(part.get("text") or f"[{part.get('type')}]") for part in parts)
    return str(content or "")


def calls_of(message: Row) -> list[str]:
    """The calls of a message, a line each: the tool and the argument that says most."""
    lines = []
    for call in message.get("tool_calls") or ():
        function = call.get("function", call)
        lines.append(f"{function.get('name')} {' '.join(_telling(function.get('arguments')).split())}".strip())
    return lines


def _telling(arguments: object) -> str:
    """The argument that says most about a call."""
    try:
        found = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return str(arguments)
    if not isinstance(found, Mapping):
        return ""
    named = [found[name] for name in TELLING if name in found]
    return next((value for value in named or found.values() if isinstance(value, str)), "")


def age(moment: float | None) -> str:
    """How long ago, in one unit."""
    if not moment:
        return ""
    seconds = max(0.0, time.time() - moment)
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit} ago"
    return "now"


def title_of(row: Row) -> str:
    """The title; of a session that has none, how it began, in quotes: it cannot be resumed by that."""
    if row.get("title"):
        return " ".join(str(row["title"]).split())
    began = " ".join(str(row.get("preview") or "").split())
    return f'"{began}"' if began else ""


def markdown(session: Row, *, with_tools: bool) -> str:
    """The session as a page to keep or send."""
    facts = [f"- id: `{session['id']}`", f"- started: {moment(session.get('started_at'))}"]
    facts += [f"- {name}: {session[name]}" for name in ("model", "source", "cwd") if session.get(name)]
    parts = [f"# {session.get('title') or session['id']}", "\n".join(facts)]
    for message in session["messages"]:
        role, text = str(message["role"]), said(message).strip()
        if role == "tool" and with_tools:
            parts.append(f"**{message.get('tool_name') or 'tool'}**\n\n{_fenced(text)}")
        elif role in ("user", "assistant") and text:
            parts.append(f"## {'You' if role == 'user' else 'Assistant'}\n\n{text}")
        for call in message.get("tool_calls") or ():
            function = call.get("function", call)
            parts.append(f"→ `{function.get('name')}`\n\n{_fenced(str(function.get('arguments')))}")
    return "\n\n".join(parts) + "\n\n"


def _fenced(text: str) -> str:
    """`text` as a block; the fence is longer than any inside."""
    ticks = max((len(run) for run in re.findall(r"`{3,}", text)), default=2) + 1
    return f"{'`' * ticks}\n{text}\n{'`' * ticks}"


def stats(home: Path, db: "SessionDB | None") -> dict[str, Any]:
    """Counts, and the size of the store's files."""
    state = paths.state_file(home)
    files = [state, *(state.with_name(state.name + end) for end in ("-wal", "-shm"))]
    size = sum(file.stat().st_size for file in files if file.exists())
    if db is None:
        return {"sessions": 0, "messages": 0, "size_bytes": size, "blob_bytes": 0, "free_bytes": 0, "by_source": {}}
    stored = db.storage_stats()
    return {
        "sessions": stored["sessions"],
        "messages": stored["messages"],
        "size_bytes": size,
        "blob_bytes": stored["blob_bytes"],
        "free_bytes": stored["free_bytes"],
        "by_source": stored["by_source"],
    }


def moment(seconds: float | None) -> str:
    """A time of day, to the minute; nothing when it is not known."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds)) if seconds else ""
