"""The full-text index: filled behind the writer in batches, up to a watermark that is stored with it."""

# ruff: noqa: S608 - names in statements come from the schema, never from outside

import sqlite3
from collections.abc import Iterable
from typing import Any

from hermes.errors import StoreError
from hermes.state.codec import BLOB_MARK, Column, Fetch, decode_content, decode_json, read_text
from hermes.state.message_rows import is_earlier_search
from hermes.state.sqlite.search_query import index_text, tag_of
from hermes.state.sqlite.tables import FORMAT, FORMAT_VERSION, WATERMARK, newest_id, set_meta, watermark

TEXT_LIMIT = 32_768
BATCH_CHARS = 200_000
TOOL_HEAD, TOOL_TAIL = 600, 200  # of a tool's output only the ends are indexed: it is bulk, and can be made again
ARGUMENTS_LIMIT = 600

ROW_FIELDS = "m.id, m.role, m.content, m.tool_name, m.tool_calls, s.source"
_ROWS = f"SELECT {ROW_FIELDS} FROM messages m LEFT JOIN sessions s ON s.id = m.session_id"
_INSERT = "INSERT INTO messages_fts(rowid, content, tags) VALUES (?, ?, ?)"
OPTIMIZE = "INSERT INTO messages_fts(messages_fts) VALUES ('optimize')"
_DELETE = "INSERT INTO messages_fts(messages_fts, rowid, content, tags) VALUES ('delete', ?, ?, ?)"


def index_batch(conn: sqlite3.Connection, fetch: Fetch, limit: int) -> tuple[int, int]:
    """Index up to `limit` messages inside the caller's transaction; the new watermark and how many were indexed.

    Fewer when they are long, so that nobody waits long for the file.
    """
    mark = watermark(conn)
    entries: list[tuple[int, str, str]] = []
    size = 0
    for row in conn.execute(f"{_ROWS} WHERE m.id > ? ORDER BY m.id LIMIT ?", (mark, limit)):
        entries.append(entry(row, fetch))
        size += len(entries[-1][1])
        if size > BATCH_CHARS:
            break
    conn.executemany(_INSERT, entries)
    if mark == 0:
        set_meta(conn, FORMAT, FORMAT_VERSION)
    # The newest messages may have been deleted before they were indexed; their ids are never given again.
    mark = entries[-1][0] if entries else max(mark, newest_id(conn))
    set_meta(conn, WATERMARK, str(mark))
    return mark, len(entries)


def tail(conn: sqlite3.Connection, mark: int, limit: int = -1) -> list[tuple[Any, ...]]:
    """The rows after the watermark, oldest first."""
    return conn.execute(f"{_ROWS} WHERE m.id > ? ORDER BY m.id LIMIT ?", (mark, limit)).fetchall()


def remove(conn: sqlite3.Connection, message_ids: Iterable[int], fetch: Fetch) -> None:
    """Take messages out of the index; call it before their rows are deleted or changed."""
    mark = watermark(conn)
    for message_id in message_ids:
        if message_id <= mark:
            row = conn.execute(f"{_ROWS} WHERE m.id = ?", (message_id,)).fetchone()
            if row is not None:
                conn.execute(_DELETE, entry(row, fetch))


def reset(conn: sqlite3.Connection) -> None:
    """Empty the index; batches fill it again from the first message."""
    conn.execute("INSERT INTO messages_fts(messages_fts) VALUES ('delete-all')")
    set_meta(conn, WATERMARK, "0")
    set_meta(conn, FORMAT, FORMAT_VERSION)


def entry(row: tuple[Any, ...], fetch: Fetch) -> tuple[int, str, str]:
    """A row of `ROW_FIELDS` as the index takes it."""
    return row[0], index_text(searchable(row, fetch)), tag_of(row[1], row[5] or "")


def searchable(row: tuple[Any, ...], fetch: Fetch) -> str:
    """The words by which a message can be found: its text, the tool's name, the calls it asks for.

    A search for earlier conversations and its results have none: they would be found in place of what they found.
    """
    _, role, content, tool_name, tool_calls, _ = row
    if tool_calls is None and tool_name is None and role != "tool" and isinstance(content, str) and content[:1] != "\0":
        return content[:TEXT_LIMIT]  # nearly all are so
    name, calls = read_text(tool_name) or "", decode_json(tool_calls)
    if is_earlier_search(name, calls):
        return ""
    text = plain_text(content, fetch, whole=role != "tool")
    if role == "tool" and len(text) > TOOL_HEAD + TOOL_TAIL:
        text = f"{text[:TOOL_HEAD]} … {text[-TOOL_TAIL:]}"
    parts = [text[:TEXT_LIMIT], name]
    if isinstance(calls, list):
        parts.extend(_call_words(call) for call in calls)
    return "\n".join(part for part in parts if part)


def plain_text(content: Column, fetch: Fetch, *, whole: bool = True) -> str:
    """The words of a stored content; pictures are never fetched, other blobs only when `whole` is asked for."""
    text = read_text(content)
    if text is None or not text.startswith("\0"):
        return text or ""
    if text.startswith(BLOB_MARK) and not whole:
        return ""
    try:
        value = decode_content(text, lambda digest: fetch(digest) if text.startswith(BLOB_MARK) else b"")
    except StoreError:
        return ""
    if isinstance(value, str):
        return value
    parts = value if isinstance(value, list) else [value]
    return "\n".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))


def _call_words(call: Any) -> str:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return ""
    return f"{function.get('name', '')} {str(function.get('arguments', ''))[:ARGUMENTS_LIMIT]}"
