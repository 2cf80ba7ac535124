"""A session that compression continues under another id: the step that makes it so, and the line it leaves.

Its title is the next number of the old one: "title", "title #2", "title #3".
"""

# ruff: noqa: S608 - names in statements come from the schema, never from outside
import sqlite3
from collections.abc import Callable

from hermes.errors import SessionMoved
from hermes.ops import SessionContinued
from hermes.state.codec import read_text
from hermes.state.titles import next_free

COMPRESSION = "compression"  # the end reason
_TIP = (
    "SELECT c.id FROM sessions p JOIN sessions c ON c.parent_session_id = p.id WHERE p.id = ?"
    " AND p.end_reason = 'compression' AND (c.source = p.source OR c.source NOT IN ('subagent', 'tool'))"
    # The child is made in the commit that ends its parent, so either clock reading may come first.
    " AND c.started_at >= p.ended_at - 1.0 ORDER BY c.started_at DESC, c.id DESC LIMIT 1"
)
_COMPRESSED_PARENT = (
    "SELECT p.id FROM sessions c JOIN sessions p ON p.id = c.parent_session_id"
    " WHERE c.id = ? AND p.end_reason = 'compression'"
)
_STATE = (
    "SELECT s.end_reason, s.title, (SELECT max(id) FROM messages m WHERE m.session_id = s.id AND m.active = 1)"
    " FROM sessions s WHERE s.id = ?"
)
# What tells whose session it is and where it takes place; the kernel knows nothing of most of these.
_INHERITED = (
    "source",
    "user_id",
    "session_key",
    "chat_id",
    "chat_type",
    "thread_id",
    "display_name",
    "origin_json",
    "git_branch",
    "git_repo_root",
    "profile_name",
)
_INHERIT = (
    f"UPDATE sessions SET ({', '.join(_INHERITED)}) = (SELECT {', '.join(_INHERITED)} FROM sessions WHERE id = ?),"
    " title = ? WHERE id = ?"
)


def continued(conn: sqlite3.Connection, op: SessionContinued, create: Callable[[], int]) -> int:
    """Do what `op` says, inside the caller's transaction; `create` makes the row of its child."""
    row = conn.execute(_STATE, (op.session_id,)).fetchone()
    if row is None:
        raise SessionMoved(f"no session {op.session_id!r}")
    end_reason, title, newest = row[0], read_text(row[1]), row[2] or 0
    if end_reason == COMPRESSION:
        raise SessionMoved(f"session {op.session_id!r} goes on as {tip_of(conn, op.session_id)!r}")
    if newest != op.last_row:
        raise SessionMoved(f"session {op.session_id!r} has got other messages meanwhile")
    conn.execute("UPDATE sessions SET ended_at = ?, end_reason = 'compression' WHERE id = ?", (op.at, op.session_id))
    made = create()
    if not made:
        raise SessionMoved(f"there is a session {op.child.session_id!r} already")
    conn.execute(_INHERIT, (op.session_id, _next_title(conn, title), op.child.session_id))
    return made


def tip_of(conn: sqlite3.Connection, session_id: str) -> str:
    """Follow compressions to the newest session; cycles end where they began."""
    return line_after(conn, session_id)[-1]


def line_after(conn: sqlite3.Connection, session_id: str) -> list[str]:
    """The session and those that compressions made of it, oldest first."""
    line = [session_id]
    while (row := conn.execute(_TIP, (line[-1],)).fetchone()) is not None and row[0] not in line:
        line.append(row[0])
    return line


def line_before(conn: sqlite3.Connection, session_id: str) -> list[str]:
    """The sessions that compressions made this one of, oldest first."""
    line = [session_id]
    while (row := conn.execute(_COMPRESSED_PARENT, (line[0],)).fetchone()) is not None and row[0] not in line:
        line.insert(0, row[0])
    return line[:-1]


def _next_title(conn: sqlite3.Connection, title: str | None) -> str | None:
    def like(base: str) -> list[str]:
        sql = "SELECT title FROM sessions WHERE title = ? OR (title >= ? AND title < ?)"  # "$" follows "#"
        return [row[0] for row in conn.execute(sql, (base, f"{base} #", f"{base} $"))]

    return next_free(title, like) if title else None
