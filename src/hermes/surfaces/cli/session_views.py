"""Sessions as people read them: lists, transcripts, hits, figures."""

import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.config import paths
from hermes.surfaces.cli.output import Output, cut

if TYPE_CHECKING:
    from hermes.state import SessionDB

Row = Mapping[str, Any]
RESULT_CHARS = 2000
MESSAGES_AN_EXCHANGE = 12  # a turn has many calls; more than this is left out rather than read


def table(out: Output, rows: Sequence[Row]) -> None:
    """One line a session."""
    cells = [
        [row["id"], age(row.get("last_active")), row.get("source"), row.get("message_count"), title_of(row)]
        for row in rows
    ]
    out.table(["ID", "LAST", "SOURCE", "MESSAGES", "TITLE"], cells, flexible=4)


def transcript(out: Output, session: Row, *, with_tools: bool) -> None:
    """The facts of a session and what was said in it."""
    out.line(out.style(str(session.get("title") or session["id"]), "bold"))
    facts = {
        "id": session["id"],
        "started": _moment(session.get("started_at")),
        "model": session.get("model"),
        "source": session.get("source"),
        "cwd": session.get("cwd"),
        "tokens": _tokens(session),
    }
    for name, value in facts.items():
        if value:
            out.line(f"  {name:<8} {value}")
    for message in session["messages"]:
        _message(out, message, with_tools=with_tools)


def markdown(session: Row, *, with_tools: bool) -> str:
    """The session as a page to keep or send."""
    facts = [f"- id: `{session['id']}`", f"- started: {_moment(session.get('started_at'))}"]
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


def hits(out: Output, groups: Sequence[Row]) -> None:
    """What a search found, conversation by conversation: its title, and the best lines of it."""
    for group in groups:
        out.line(f"{out.style(str(group['title'] or 'no title'), 'bold')}  {group['when']}  {group['session_id']}")
        for hit in group["hits"]:
            snippet = " ".join(str(hit["snippet"]).split())
            marked = snippet.replace(">>>", "\x1b[1m").replace("<<<", "\x1b[0m") if out.colours else snippet
            out.line(f"  {hit['role']}: {marked}")


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


def last_messages(db: "SessionDB", session_id: str, exchanges: int) -> list[dict[str, Any]]:
    """What people and the model said in the last `exchanges`; the cost does not grow with the session."""
    most, count = exchanges * MESSAGES_AN_EXCHANGE, db.message_count(session_id)
    rows = db.get_messages(session_id, limit=most, offset=max(0, count - most)) if most else []
    spoken = [row for row in rows if row["role"] in ("user", "assistant") and said(row).strip()]
    starts = [place for place, row in enumerate(spoken) if row["role"] == "user"]
    return spoken[starts[-exchanges] :] if len(starts) >= exchanges else spoken


def said(message: Row) -> str:
    """The words of a message; what is no text stands as its kind."""
    content = message.get("content")
    if isinstance(content, list):
        parts = (part for part in content if isinstance(part, Mapping))
        return "\n".join(str(part.get("text") or f"[{part.get('type')}]") for part in parts)
    return str(content or "")


def age(moment: float | None) -> str:
    """How long ago, in one unit."""
    if not moment:
        return ""
    seconds = max(0.0, time.time() - moment)
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit} ago"
    return "now"


def _message(out: Output, message: Row, *, with_tools: bool) -> None:
    role, content = message["role"], said(message)
    if role == "tool":
        if with_tools:
            out.line(f"\n{out.style(str(message.get('tool_name') or 'tool'), 'dim')}")
            out.line(cut(content, RESULT_CHARS) if len(content) > RESULT_CHARS else content)
        return
    if content.strip():
        out.line(
            f"\n{out.style('You' if role == 'user' else role.capitalize(), 'cyan' if role == 'user' else 'green')}"
        )
        out.line(content)
    for call in message.get("tool_calls") or ():
        function = call.get("function", call)
        out.line(out.style(f"  → {function.get('name')} {cut(str(function.get('arguments')), 160)}", "dim"))


def title_of(row: Row) -> str:
    """The title; of a session that has none, how it began, in quotes: it cannot be resumed by that."""
    if row.get("title"):
        return " ".join(str(row["title"]).split())
    began = " ".join(str(row.get("preview") or "").split())
    return f'"{began}"' if began else ""


def _tokens(session: Row) -> str:
    read, written = session.get("input_tokens") or 0, session.get("output_tokens") or 0
    return f"{read} in, {written} out" if read or written else ""


def _moment(seconds: float | None) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds)) if seconds else ""
