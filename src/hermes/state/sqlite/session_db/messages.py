"""Messages: append, read, replace, rewind, windows."""

# ruff: noqa: S608 - names in statements come from the schema, never from outside

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hermes.errors import StoreError
from hermes.state.codec import bind_text
from hermes.state.sqlite.session_db.base import DbBase, Row
from hermes.state.sqlite.session_db.rows import (
    MESSAGE_FIELDS,
    NewMessage,
    delete_messages,
    message_dict,
    recount,
    unreferenced,
)

_ORDER = (  # of values that are given without their names
    "tool_name",
    "tool_calls",
    "tool_call_id",
    "token_count",
    "finish_reason",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "codex_reasoning_items",
    "codex_message_items",
    "platform_message_id",
    "observed",
    "effect_disposition",
    "timestamp",
    "api_content",
    "status",
)
_BUMP = "UPDATE sessions SET message_count = message_count + 1, tool_call_count = tool_call_count + ? WHERE id = ?"


class MessageCalls(DbBase):
    """Calls on the transcript of a session."""

    def append_message(self, session_id: str, role: str, content: Any = None, *more: Any, **fields: Any) -> int:
        """Add a message and count it, durably; return its row id.

        `more` and `fields`, in this order: tool_name, tool_calls, tool_call_id, token_count, finish_reason, reasoning,
        reasoning_content, reasoning_details, codex_reasoning_items, codex_message_items, platform_message_id, observed,
        effect_disposition, timestamp, api_content, status. Lists and dicts come back as they went in.
        """
        if len(more) > len(_ORDER):
            raise TypeError(f"append_message() takes {len(_ORDER) + 3} values, not {len(more) + 3}")
        given = dict(zip(_ORDER, more, strict=False))
        twice = sorted(given.keys() & fields.keys())
        if twice:
            raise TypeError(f"append_message() got multiple values for argument {twice[0]!r}")
        fields |= given
        unknown = sorted(fields.keys() - set(_ORDER))
        if unknown:
            raise TypeError(f"append_message() got an unexpected keyword argument {unknown[0]!r}")
        message = NewMessage(session_id, {**fields, "role": role, "content": content}, self._clock())
        self._put_blobs([message])

        def work(conn: sqlite3.Connection) -> int:
            if not conn.execute(_BUMP, (message.call_count, session_id)).rowcount:
                raise StoreError(f"no session {session_id!r}")
            return message.insert(conn)

        return self._write(work)

    def get_messages(
        self, session_id: str, include_inactive: bool = False, limit: int | None = None, offset: int = 0
    ) -> list[Row]:
        """The rows in order, JSON columns parsed."""
        where = "" if include_inactive else " AND m.active = 1"
        return self._messages(
            f"WHERE m.session_id = ?{where} ORDER BY m.id LIMIT ? OFFSET ?",
            (session_id, -1 if limit is None else limit, offset),
        )

    def replace_messages(
        self, session_id: str, messages: Sequence[Mapping[str, Any]], active_only: bool = False
    ) -> None:
        """Put `messages` in the place of all rows (or of the active ones), and count anew."""
        new = [NewMessage(session_id, message, self._clock()) for message in messages]
        self._put_blobs(new)
        where = " AND active = 1" if active_only else ""

        def work(conn: sqlite3.Connection) -> list[str]:
            if conn.execute("SELECT 1 FROM sessions WHERE id = ?", (session_id,)).fetchone() is None:
                raise StoreError(f"no session {session_id!r}")
            old = conn.execute(f"SELECT id FROM messages WHERE session_id = ?{where}", (session_id,)).fetchall()
            loose = delete_messages(conn, [row[0] for row in old], self.store.blobs.get)
            for message in new:
                message.insert(conn)
            recount(conn, session_id)
            return unreferenced(conn, loose)

        for digest in self._write(work):
            self.store.blobs.remove(digest)

    def clear_messages(self, session_id: str) -> None:
        """Empty the session, counters too."""
        self.replace_messages(session_id, [])

    def rewind_to_message(self, session_id: str, target_message_id: int) -> Row:
        """Set the target and all after it aside, so that the session goes on before it; they can be restored."""

        def work(conn: sqlite3.Connection) -> Row:
            target = conn.execute(
                "SELECT role, content FROM messages WHERE id = ? AND session_id = ? AND active = 1",
                (target_message_id, session_id),
            ).fetchone()
            if target is None:
                raise StoreError(f"session {session_id!r} has no active message {target_message_id}")
            gone = conn.execute(
                "UPDATE messages SET active = 0 WHERE session_id = ? AND id >= ? AND active = 1",
                (session_id, target_message_id),
            ).rowcount
            conn.execute("UPDATE sessions SET rewind_count = rewind_count + 1 WHERE id = ?", (session_id,))
            recount(conn, session_id)
            return {"session_id": session_id, "target_message_id": target_message_id, "rewound": gone}

        return self._write(work)

    def restore_rewound(self, session_id: str, since_message_id: int) -> int:
        """Bring rewound messages back, from `since_message_id` on; how many."""

        def work(conn: sqlite3.Connection) -> int:
            count = conn.execute(
                "UPDATE messages SET active = 1 WHERE session_id = ? AND id >= ? AND active = 0 AND compacted = 0",
                (session_id, since_message_id),
            ).rowcount
            recount(conn, session_id)
            return count

        return self._write(work)

    def get_messages_around(self, session_id: str, around_message_id: int, window: int = 5) -> Row:
        """Up to `window` messages on each side of one, and how many more there are."""
        before = self._messages(
            "WHERE m.session_id = ? AND m.active = 1 AND m.id < ? ORDER BY m.id DESC LIMIT ?",
            (session_id, around_message_id, window),
        )
        here = self._messages("WHERE m.session_id = ? AND m.id = ?", (session_id, around_message_id))
        after = self._messages(
            "WHERE m.session_id = ? AND m.active = 1 AND m.id > ? ORDER BY m.id LIMIT ?",
            (session_id, around_message_id, window),
        )
        if not here:
            return {"window": [], "messages_before": 0, "messages_after": 0}
        total_before, total_after = self._sides(session_id, around_message_id)
        return {
            "window": [*reversed(before), *here, *after],
            "messages_before": total_before - len(before),
            "messages_after": total_after - len(after),
        }

    def get_anchored_view(
        self,
        session_id: str,
        around_message_id: int,
        window: int = 5,
        bookend: int = 3,
        keep_roles: tuple[str, ...] | None = ("user", "assistant"),
    ) -> Row:
        """A window around a message, with the beginning and the end of the session where the window leaves them out.

        Bookends hold only `keep_roles`; the window holds those and the anchor itself.
        """
        view = self.get_messages_around(session_id, around_message_id, window)
        rows: list[Row] = view["window"]
        if not rows:
            return {**view, "bookend_start": [], "bookend_end": []}
        first, last = rows[0]["id"], rows[-1]["id"]
        keep = "" if keep_roles is None else f" AND m.role IN ({','.join('?' * len(keep_roles))})"
        roles = keep_roles or ()
        start = self._messages(
            f"WHERE m.session_id = ? AND m.active = 1 AND m.id < ?{keep} ORDER BY m.id LIMIT ?",
            (session_id, first, *roles, bookend),
        )
        end = self._messages(
            f"WHERE m.session_id = ? AND m.active = 1 AND m.id > ?{keep} ORDER BY m.id DESC LIMIT ?",
            (session_id, last, *roles, bookend),
        )
        kept = [row for row in rows if keep_roles is None or row["role"] in roles or row["id"] == around_message_id]
        return {**view, "window": kept, "bookend_start": start, "bookend_end": end[::-1]}

    def list_recent_user_messages(self, session_id: str, limit: int = 20, include_inactive: bool = False) -> list[Row]:
        """What the person said last, newest first."""
        where = "" if include_inactive else " AND m.active = 1"
        return self._messages(
            f"WHERE m.session_id = ? AND m.role = 'user'{where} ORDER BY m.id DESC LIMIT ?", (session_id, limit)
        )

    def message_count(self, session_id: str | None = None) -> int:
        """Active messages of a session, or of all."""
        where, values = ("", ()) if session_id is None else (" AND session_id = ?", (session_id,))
        row = self._one(f"SELECT count(*) FROM messages WHERE active = 1{where}", values)
        return int(row[0]) if row else 0

    def has_archived_messages(self, session_id: str) -> bool:
        """Whether messages of the session were set aside by a rewind or a compaction."""
        return (
            self._one("SELECT 1 FROM messages WHERE session_id = ? AND active = 0 LIMIT 1", (session_id,)) is not None
        )

    def set_latest_user_api_content(self, session_id: str, content: Any, api_content: str) -> int:
        """Note what was really sent for the newest user message, if that message is `content`; its row id, or 0."""
        rows = self._messages(
            "WHERE m.session_id = ? AND m.role = 'user' AND m.active = 1 ORDER BY m.id DESC LIMIT 1", (session_id,)
        )
        if not rows or rows[0]["content"] != content:
            return 0
        row_id = int(rows[0]["id"])
        self._execute("UPDATE messages SET api_content = ? WHERE id = ?", (bind_text(api_content), row_id))
        return row_id

    def has_platform_message_id(self, session_id: str, platform_message_id: str) -> bool:
        """Whether a message of the platform was stored already."""
        sql = "SELECT 1 FROM messages WHERE session_id = ? AND platform_message_id = ? LIMIT 1"
        return self._one(sql, (session_id, platform_message_id)) is not None

    def _messages(self, rest: str, values: Sequence[Any]) -> list[Row]:
        rows = self._all(f"SELECT {MESSAGE_FIELDS} FROM messages m {rest}", values)
        return [message_dict(row, self.store.blobs.get) for row in rows]

    def _sides(self, session_id: str, message_id: int) -> tuple[int, int]:
        row = self._one(
            "SELECT count(*) FILTER (WHERE id < ?1), count(*) FILTER (WHERE id > ?1) FROM messages"
            " WHERE session_id = ?2 AND active = 1",
            (message_id, session_id),
        )
        return (row[0], row[1]) if row else (0, 0)

    def _put_blobs(self, messages: Iterable[NewMessage]) -> None:
        for message in messages:
            for digest, data in message.blobs.found.items():
                self.store.blobs.put(data, digest)
