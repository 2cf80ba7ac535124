"""A session read back from its rows."""

# ruff: noqa: S608 - names in statements come from the schema, never from outside

import logging
import sqlite3
from operator import itemgetter
from typing import Any

from msgspec import structs

from hermes import dicts
from hermes.errors import StoreError
from hermes.ops import OpenCall, SessionRecord
from hermes.state.codec import Column, Fetch, decode_content, decode_json, read_text
from hermes.state.sqlite.leases import lease_of
from hermes.state.sqlite.session_continuation import COMPRESSION, line_before, tip_of
from hermes.state.sqlite.store_ops_sql import TEXT_REF
from hermes.types import Message, ToolCall, Usage

_log = logging.getLogger(__name__)

MAX_TEXTS = 32
_texts: dict[str, str] = {}  # by reference, which names their content: sessions with equal prompts share one

MESSAGE_FIELDS = (
    "id, role, content, tool_call_id, tool_calls, tool_name, timestamp, token_count, finish_reason, reasoning,"
    " reasoning_content, platform_message_id, status, reasoning_details, codex_reasoning_items, codex_message_items"
)
_SESSION = (
    "SELECT source, model, system_prompt, tool_definitions, cwd, ended_at, input_tokens, output_tokens,"
    " cache_read_tokens, cache_write_tokens, reasoning_tokens, estimated_cost_usd, title, message_count, model_config,"
    " end_reason, parent_session_id, compression_failure_cooldown_until, compression_fallback_streak,"
    " (SELECT id FROM messages WHERE session_id = ?1 ORDER BY timestamp DESC, id DESC LIMIT 1),"
    " EXISTS (SELECT 1 FROM tool_runs WHERE session_id = ?1 AND status IS NULL),"
    " EXISTS (SELECT 1 FROM leases WHERE session_id = ?1)"
    " FROM sessions WHERE id = ?1"
)
_NEWEST, _HAS_OPEN_CALLS, _HAS_LEASE = -3, -2, -1  # the columns of _SESSION that are no fields of a record
_MESSAGES = f"SELECT {MESSAGE_FIELDS} FROM messages WHERE session_id = ? AND active = 1 AND id > ?"
_CONTEXTS = (
    "SELECT c.message_id, c.text FROM messages m JOIN request_context c ON c.message_id = m.id"
    " WHERE m.session_id = ? AND m.active = 1 AND m.id > ?"
)
_OPEN_CALLS = (
    "SELECT r.call_id, r.name, r.call, m.tool_calls, r.started_at FROM tool_runs r LEFT JOIN messages m"
    " ON m.id = r.message_id WHERE r.session_id = ? AND r.status IS NULL ORDER BY r.id"
)


def load_session(conn: sqlite3.Connection, session_id: str, fetch: Fetch, after: int = 0) -> SessionRecord | None:
    """One session as of one moment; of its messages those above row id `after`.

    A session that has nothing new is told by its newest message, whatever its length. Should a clock have gone back
    between two writers, `message_count` tells that the messages are not all of them.
    """
    if after:
        head = conn.execute(_SESSION, (session_id,)).fetchone()
        if head is not None and head[_NEWEST] == after and not head[_HAS_OPEN_CALLS]:
            return _record(conn, session_id, head)
    conn.execute("BEGIN")  # one snapshot for all the reads below
    try:
        head = conn.execute(_SESSION, (session_id,)).fetchone()
        if head is None:
            return None
        rows = conn.execute(_MESSAGES, (session_id, after)).fetchall()
        found = conn.execute(_CONTEXTS, (session_id, after)) if rows else ()
        contexts = {row[0]: read_text(row[1]) or "" for row in found}
        runs = conn.execute(_OPEN_CALLS, (session_id,)).fetchall()
        record = _record(conn, session_id, head)
    finally:
        conn.execute("COMMIT")
    rows.sort(key=itemgetter(0))
    return structs.replace(
        record,
        messages=tuple(message_of(row, fetch) for row in rows),
        contexts=contexts,
        open_calls=tuple(_open_call(*run) for run in runs),
    )


def _record(conn: sqlite3.Connection, session_id: str, head: tuple[Any, ...]) -> SessionRecord:
    """The record of a row of `_SESSION`, without messages."""
    tip = tip_of(conn, session_id) if head[15] == COMPRESSION else session_id
    earlier = line_before(conn, session_id) if head[16] is not None else ()
    return SessionRecord(
        session_id=session_id,
        source=head[0],
        model=head[1],
        system_prompt=full_text(conn, head[2]),
        tool_definitions=full_text(conn, head[3]),
        cwd=read_text(head[4]),
        ended=head[5] is not None,
        messages=(),
        contexts={},
        open_calls=(),
        totals=Usage(*head[6:11]),
        cost_usd=head[11],
        title=read_text(head[12]),
        message_count=head[13],
        model_config=_config(head[14]),
        continued_by=None if tip == session_id else tip,
        earlier=tuple(earlier),
        compress_after=head[17] or 0.0,
        idle_compressions=head[18] or 0,
        lease=lease_of(conn, session_id) if head[_HAS_LEASE] else None,
    )


def _config(value: Column) -> dict[str, Any] | None:
    found = decode_json(value)
    return found if isinstance(found, dict) else None


def message_of(row: tuple[Any, ...], fetch: Fetch) -> Message:
    """One row of `MESSAGE_FIELDS`; content whose blob is lost is told in its place, so the session still opens."""
    raw: dict[str, Any] = {
        "role": row[1],
        "content": content_or_notice(row[2], fetch),
        "tool_call_id": read_text(row[3]),
        "tool_calls": decode_json(row[4]),
        "tool_name": read_text(row[5]),
    }
    if raw["tool_calls"] is None and row[1] in ("system", "user", "assistant", "tool"):
        message = _plain_message(row, raw["content"])
        if message is not None:
            return message
    raw |= {
        "timestamp": row[6],
        "token_count": row[7],
        "finish_reason": read_text(row[8]),
        "reasoning": read_text(row[9]),
        "reasoning_content": read_text(row[10]),
        "platform_message_id": read_text(row[11]),
        "status": row[12],
        "reasoning_details": decode_json(row[13]),
        "codex_reasoning_items": decode_json(row[14]),
        "codex_message_items": decode_json(row[15]),
    }
    return _with_id(dicts.from_dict(raw), row[0])


def full_text(conn: sqlite3.Connection, value: Column) -> str | None:
    """A session column's text, wherever it is kept."""
    text = read_text(value)
    if text is None or not text.startswith(TEXT_REF):
        return text
    known = _texts.get(text)
    if known is None:
        row = conn.execute("SELECT text FROM texts WHERE digest = ?", (text[len(TEXT_REF) :],)).fetchone()
        known = read_text(row[0]) if row else None
        if known is not None:
            if len(_texts) >= MAX_TEXTS:
                _texts.clear()
            _texts[text] = known
    return known


def content_or_notice(value: Column, fetch: Fetch) -> Any:
    """The content, or one sentence in its place when its blob cannot be read."""
    try:
        return decode_content(value, fetch)
    except StoreError as error:
        _log.warning("content of a message is lost: %s", error)
        return f"[The stored content of this message is lost: {error}]"


def _plain_message(row: tuple[Any, ...], content: Any) -> Message | None:
    """The common case without the tolerant reader: plain text and no JSON columns."""
    if not (content is None or isinstance(content, str)) or any(value is not None for value in row[13:16]):
        return None
    return Message(
        role=row[1],
        content=content,
        tool_call_id=read_text(row[3]),
        tool_name=read_text(row[5]),
        status=row[12],
        finish_reason=read_text(row[8]),
        reasoning=read_text(row[9]),
        reasoning_content=read_text(row[10]),
        platform_message_id=read_text(row[11]),
        token_count=row[7],
        timestamp=row[6],
        id=row[0],
    )


def _with_id(message: Message, row_id: int) -> Message:
    fields = {name: getattr(message, name) for name in message.__struct_fields__}
    return Message(**(fields | {"id": row_id}))


def _open_call(call_id: Column, name: Column, packed: Column, asked: Column, started_at: float) -> OpenCall:
    if packed is not None:
        return OpenCall(dicts.call_from_dict(decode_json(packed)), started_at)
    call_id, name = read_text(call_id) or "", read_text(name) or ""
    calls = [dicts.call_from_dict(raw) for raw in decode_json(asked) or ()]
    return OpenCall(next((call for call in calls if call.id == call_id), ToolCall(id=call_id, name=name)), started_at)
