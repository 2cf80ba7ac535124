"""Lineage: what a session grew out of, what it became, and where to go on."""

import re
import sqlite3
from collections.abc import Sequence
from typing import Any

from hermes import dicts
from hermes.state.codec import Fetch, read_text
from hermes.state.sqlite.read import MESSAGE_FIELDS, content_or_notice, message_of
from hermes.state.sqlite.session_continuation import line_after, line_before, tip_of
from hermes.state.sqlite.session_db.base import DbBase, Row

MAX_STEPS = 32

_MEMORY_CONTEXT = re.compile(r"<memory-context>.*?</memory-context>\s*", re.DOTALL)
_NEWEST_CHILD = "SELECT id FROM sessions WHERE parent_session_id = ? ORDER BY started_at DESC, id DESC LIMIT 1"


class LineageCalls(DbBase):
    """Calls that follow parents and children."""

    def resolve_resume_session_id(self, session_id: str) -> str:
        """Where to go on: the tip of a compressed session; else the session, or its newest child with messages."""
        return self.store.read(lambda conn: _resume(conn, session_id))

    def get_compression_tip(self, session_id: str) -> str | None:
        """The session that continues this one after compressions; itself when there was none."""
        return self.store.read(lambda conn: tip_of(conn, session_id))

    def get_compression_lineage(self, session_id: str) -> list[str]:
        """The ids from the root to the tip, as compression made them."""
        return self.store.read(lambda conn: [*line_before(conn, session_id), *line_after(conn, session_id)])

    def get_conversation_root(self, session_id: str) -> str:
        """The first session of the lineage."""
        return self.store.read(lambda conn: _ancestors(conn, session_id)[0])

    def get_messages_as_conversation(
        self,
        session_id: str,
        include_ancestors: bool = False,
        include_inactive: bool = False,
        repair_alternation: bool = False,
    ) -> list[Row]:
        """The transcript as OpenAI-style dicts.

        With ancestors, root first; a user message that a child repeats is left out. Memory context never shows.
        """
        ids = self.store.read(lambda conn: _ancestors(conn, session_id)) if include_ancestors else [session_id]
        where = "" if include_inactive else " AND active = 1"
        conversation: list[Row] = []
        for one in ids:
            rows = self._all(f"SELECT {MESSAGE_FIELDS} FROM messages WHERE session_id = ?{where} ORDER BY id", (one,))  # noqa: S608 - fixed names
            messages = [_without_memory(_as_dict(row, self.store.blobs.get)) for row in rows]
            conversation += _without_replay(conversation, messages)
        return _alternating(conversation) if repair_alternation else conversation

    def get_ancestor_display_prefix(self, session_id: str) -> list[Row]:
        """What was said before this session began, in its ancestors."""
        ids = self.store.read(lambda conn: _ancestors(conn, session_id))
        if len(ids) < 2:
            return []
        return self.get_messages_as_conversation(ids[-2], include_ancestors=True)

    def get_resume_conversations(self, session_id: str) -> tuple[list[Row], list[Row]]:
        """The session's own conversation, and the one to show, with its ancestors."""
        own = self.get_messages_as_conversation(session_id)
        return own, self.get_messages_as_conversation(session_id, include_ancestors=True)

    def finalize_orphaned_compression_sessions(self) -> int:
        """End sessions whose child continued them although they were never ended; how many."""
        return self._execute(
            "UPDATE sessions SET ended_at = ?, end_reason = 'orphaned_compression' WHERE ended_at IS NULL AND id IN ("
            "SELECT c.parent_session_id FROM sessions c JOIN sessions p ON p.id = c.parent_session_id"
            " WHERE c.title LIKE p.title || ' #%' AND c.message_count > 0)",
            (self._clock(),),
        )

    # -- one compression at a time -----------------------------------------------------------------------------------

    def try_acquire_compression_lock(self, session_id: str, holder: str, ttl_seconds: float = 300.0) -> bool:
        """Become the one who compresses the session, for `ttl_seconds`; whether it worked."""
        now = self._clock()
        return bool(
            self._execute(
                "INSERT INTO compression_locks(session_id, holder, expires_at) VALUES (?1, ?2, ?3)"
                " ON CONFLICT(session_id) DO UPDATE SET holder = ?2, expires_at = ?3"
                " WHERE expires_at <= ?4 OR holder = ?2",
                (session_id, holder, now + ttl_seconds, now),
            )
        )

    def refresh_compression_lock(self, session_id: str, holder: str, ttl_seconds: float = 300.0) -> bool:
        """Keep it longer; False when it is no longer held."""
        sql = "UPDATE compression_locks SET expires_at = ? WHERE session_id = ? AND holder = ?"
        return bool(self._execute(sql, (self._clock() + ttl_seconds, session_id, holder)))

    def release_compression_lock(self, session_id: str, holder: str) -> None:
        self._execute("DELETE FROM compression_locks WHERE session_id = ? AND holder = ?", (session_id, holder))

    def get_compression_lock_holder(self, session_id: str) -> str | None:
        sql = "SELECT holder FROM compression_locks WHERE session_id = ? AND expires_at > ?"
        row = self._one(sql, (session_id, self._clock()))
        return row[0] if row else None

    def record_compression_failure_cooldown(
        self, session_id: str, cooldown_until: float, error: str | None = None
    ) -> None:
        """No compression of this session before `cooldown_until`."""
        self._cooldown(session_id, cooldown_until, error)

    def clear_compression_failure_cooldown(self, session_id: str) -> None:
        self._cooldown(session_id, None, None)

    def get_compression_failure_cooldown(self, session_id: str) -> Row | None:
        """`cooldown_until` and `error` while one is running, else None."""
        sql = (
            "SELECT compression_failure_cooldown_until, compression_failure_error FROM sessions"
            " WHERE id = ? AND compression_failure_cooldown_until > ?"
        )
        row = self._one(sql, (session_id, self._clock()))
        return {"cooldown_until": row[0], "error": row[1]} if row else None

    def get_compression_fallback_streak(self, session_id: str) -> int:
        row = self._one("SELECT compression_fallback_streak FROM sessions WHERE id = ?", (session_id,))
        return int(row[0]) if row else 0

    def set_compression_fallback_streak(self, session_id: str, streak: int) -> None:
        self._execute("UPDATE sessions SET compression_fallback_streak = ? WHERE id = ?", (streak, session_id))

    def _cooldown(self, session_id: str, until: float | None, error: str | None) -> None:
        self._execute(
            "UPDATE sessions SET compression_failure_cooldown_until = ?, compression_failure_error = ? WHERE id = ?",
            (until, error, session_id),
        )


def _resume(conn: sqlite3.Connection, session_id: str) -> str:
    tip = tip_of(conn, session_id)
    current, seen = tip, {tip}
    for step in range(MAX_STEPS + 1):
        if conn.execute("SELECT 1 FROM messages WHERE session_id = ? LIMIT 1", (current,)).fetchone():
            return current
        row = conn.execute(_NEWEST_CHILD, (current,)).fetchone() if step < MAX_STEPS else None
        if row is None or row[0] in seen:
            break
        current = row[0]
        seen.add(current)
    return tip


def _ancestors(conn: sqlite3.Connection, session_id: str) -> list[str]:
    """The line from the root to the session itself."""
    line = [session_id]
    while True:
        row = conn.execute("SELECT parent_session_id FROM sessions WHERE id = ?", (line[0],)).fetchone()
        if row is None or row[0] is None or row[0] in line:
            return line
        line.insert(0, row[0])


def _as_dict(row: tuple[Any, ...], fetch: Fetch) -> Row:
    """A row of `MESSAGE_FIELDS` as a conversation has it; content that went in as a dict comes back as one."""
    message = dicts.to_dict(message_of(row, fetch))
    if (read_text(row[2]) or "").startswith("\0"):
        content = content_or_notice(row[2], fetch)
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
    if isinstance(text, str) and "<memory-context>" in text:
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


def _alternating(messages: list[Row]) -> list[Row]:
    """Neighbours of the same plain role joined, for providers that refuse two in a row."""
    out: list[Row] = []
    for message in messages:
        last = out[-1] if out else None
        if last is not None and _joinable(last, message):
            out[-1] = {**last, "content": f"{last['content']}\n\n{message['content']}"}
        else:
            out.append(message)
    return out


def _joinable(first: Row, second: Row) -> bool:
    def plain(message: Row) -> Any:
        return isinstance(message.get("content"), str) and not message.get("tool_calls")

    return bool(
        first["role"] == second["role"] and first["role"] in ("user", "assistant") and plain(first) and plain(second)
    )
