"""Message rows between `SessionDB` and the table, and what hangs on them."""

# ruff: noqa: S608 - names in statements come from the schema, never from outside

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hermes.state.codec import Blobs, Fetch, bind_text, decode_json, encode_content, read_text
from hermes.state.message_rows import JSON_COLUMNS, TEXT_COLUMNS, call_count
from hermes.state.queries import Row
from hermes.state.sqlite import search_index
from hermes.state.sqlite.read import content_or_notice


class NewMessage:
    """A message encoded outside the transaction; `insert` runs inside it, and may run again."""

    def __init__(self, session_id: str, row: Mapping[str, Any]) -> None:
        self.blobs = Blobs()
        values = {name: bind_text(value) if isinstance(value, str) else value for name, value in row.items()}
        values |= {"session_id": session_id, "content": encode_content(row["content"], self.blobs)}
        self._sql = f"INSERT INTO messages({', '.join(values)}) VALUES ({','.join('?' * len(values))})"
        self._values = tuple(values.values())

    def insert(self, conn: sqlite3.Connection) -> int:
        """Add the row; the counters of the session are the caller's."""
        row = conn.execute(self._sql, self._values).lastrowid
        assert row is not None
        refs = [(digest, row) for digest in sorted(self.blobs.refs)]
        conn.executemany("INSERT INTO blob_refs(digest, message_id) VALUES (?,?)", refs)
        return row


def message_dicts(rows: Iterable[Sequence[Any]], columns: Sequence[str], fetch: Fetch) -> list[Row]:
    """Rows as dicts: JSON columns parsed, content whole."""
    texts = [name for name in TEXT_COLUMNS if name in columns]
    parsed = [name for name in JSON_COLUMNS if name in columns]
    found: list[Row] = [dict(zip(columns, row, strict=True)) for row in rows]
    for row in found:
        for name in texts:
            if isinstance(row[name], bytes):
                row[name] = read_text(row[name])
        for name in parsed:
            if row[name] is not None:
                row[name] = decode_json(row[name])
        content = row.get("content")
        if isinstance(content, bytes) or (content and content[0] == "\0"):  # else it is the text itself
            row["content"] = content_or_notice(content, fetch)
    return found


def delete_messages(conn: sqlite3.Connection, message_ids: Sequence[int], fetch: Fetch) -> list[str]:
    """Remove rows with all that hangs on them; the digests that nobody refers to any more."""
    search_index.remove(conn, message_ids, fetch)
    loose: set[str] = set()
    for message_id in message_ids:
        loose.update(row[0] for row in conn.execute("SELECT digest FROM blob_refs WHERE message_id = ?", (message_id,)))
        for table, column in (("blob_refs", "message_id"), ("request_context", "message_id"), ("messages", "id")):
            conn.execute(f"DELETE FROM {table} WHERE {column} = ?", (message_id,))
    sql = "SELECT 1 FROM blob_refs WHERE digest = ?"
    return [digest for digest in sorted(loose) if conn.execute(sql, (digest,)).fetchone() is None]


def recount(conn: sqlite3.Connection, session_id: str) -> None:
    """Set a session's message and call counters from its active rows."""
    rows = conn.execute("SELECT tool_calls FROM messages WHERE session_id = ? AND active = 1", (session_id,)).fetchall()
    counts = (len(rows), sum(call_count(packed) for (packed,) in rows))
    conn.execute("UPDATE sessions SET message_count = ?, tool_call_count = ? WHERE id = ?", (*counts, session_id))
