"""Message rows between the contract's keyword form and the table."""

# ruff: noqa: S608 - names in statements come from the schema, never from outside

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from hermes.state.codec import Blobs, Fetch, bind_text, decode_json, encode_content, encode_json, read_text
from hermes.state.schema import MESSAGE_COLUMNS
from hermes.state.sqlite import search_index
from hermes.state.sqlite.read import content_or_notice
from hermes.state.sqlite.session_db.base import Row

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
MESSAGE_FIELDS = ", ".join(f"m.{name}" for name in MESSAGE_COLUMNS)


class NewMessage:
    """A message encoded outside the transaction; `insert` runs inside it, and may run again."""

    def __init__(self, session_id: str, fields: Mapping[str, Any], now: float) -> None:
        self.blobs = Blobs()
        self.session_id = session_id
        calls = fields.get("tool_calls")
        self.call_count = len(calls) if isinstance(calls, list | tuple) else int(bool(calls))
        values: Row = {"session_id": session_id, "role": fields["role"]}
        values["content"] = encode_content(fields.get("content"), self.blobs)
        for name in TEXT_COLUMNS:
            value = fields.get(name)
            values[name] = (
                bind_text(value if isinstance(value, str) else encode_json(value)) if value is not None else None
            )
        for name in JSON_COLUMNS:
            value = fields.get(name)
            values[name] = None if value is None or value == [] else bind_text(_json(value))
        values["timestamp"] = seconds(fields.get("timestamp"), now)
        values["token_count"] = fields.get("token_count")
        for name, default in (("observed", 0), ("active", 1), ("compacted", 0)):
            values[name] = int(fields.get(name, default))
        self._sql = f"INSERT INTO messages({', '.join(values)}) VALUES ({','.join('?' * len(values))})"
        self._values = tuple(values.values())

    def insert(self, conn: sqlite3.Connection) -> int:
        """Add the row; the counters of the session are the caller's."""
        row = conn.execute(self._sql, self._values).lastrowid
        assert row is not None
        refs = [(digest, row) for digest in sorted(self.blobs.refs)]
        conn.executemany("INSERT INTO blob_refs(digest, message_id) VALUES (?,?)", refs)
        return row


def message_dict(row: Sequence[Any], fetch: Fetch) -> Row:
    """A row of `MESSAGE_FIELDS` as a dict: JSON columns parsed, content whole."""
    found: Row = dict(zip(MESSAGE_COLUMNS, row, strict=True))
    for name in TEXT_COLUMNS:
        found[name] = read_text(found[name])
    for name in JSON_COLUMNS:
        found[name] = decode_json(found[name])
    found["content"] = content_or_notice(found["content"], fetch)
    return found


def delete_messages(conn: sqlite3.Connection, message_ids: Sequence[int], fetch: Fetch) -> set[str]:
    """Remove rows with all that hangs on them; the digests that lost a reference."""
    search_index.remove(conn, message_ids, fetch)
    loose: set[str] = set()
    for message_id in message_ids:
        loose.update(row[0] for row in conn.execute("SELECT digest FROM blob_refs WHERE message_id = ?", (message_id,)))
        for table, column in (("blob_refs", "message_id"), ("request_context", "message_id"), ("messages", "id")):
            conn.execute(f"DELETE FROM {table} WHERE {column} = ?", (message_id,))
    return loose


def unreferenced(conn: sqlite3.Connection, digests: set[str]) -> list[str]:
    """Those of `digests` that no message refers to any more."""
    sql = "SELECT 1 FROM blob_refs WHERE digest = ?"
    return [digest for digest in sorted(digests) if conn.execute(sql, (digest,)).fetchone() is None]


def recount(conn: sqlite3.Connection, session_id: str) -> None:
    """Set a session's message and call counters from its active rows."""
    calls = 0
    rows = conn.execute("SELECT tool_calls FROM messages WHERE session_id = ? AND active = 1", (session_id,)).fetchall()
    for (packed,) in rows:
        parsed = decode_json(packed)
        calls += len(parsed) if isinstance(parsed, list) else int(bool(parsed))
    conn.execute(
        "UPDATE sessions SET message_count = ?, tool_call_count = ? WHERE id = ?", (len(rows), calls, session_id)
    )


def seconds(value: Any, default: float) -> float:
    """Epoch seconds of a number, an ISO date, or nothing."""
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str):
        from datetime import datetime  # noqa: PLC0415 - only imports of foreign rows need it

        try:
            return datetime.fromisoformat(value).timestamp()
        except ValueError:
            return default
    return default


def _json(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return encode_json(value)
    except TypeError:
        return json.dumps(value, default=str)
