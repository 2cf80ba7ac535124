"""What messaging gateways keep beside a session: who it is with, and which chat leads to which session."""

import sqlite3
from typing import Any

from hermes.state.sqlite.session_db.base import DbBase, Row
from hermes.state.sqlite.store_ops_sql import change_session

_PEER = ("source", "user_id", "session_key", "chat_id", "chat_type", "thread_id", "display_name", "origin_json")
_MATCH = ("source", "user_id", "session_key", "chat_id", "chat_type", "thread_id")


class GatewayCalls(DbBase):
    """Calls for gateways."""

    def record_gateway_session_peer(self, session_id: str, *, source: str, **peer: Any) -> None:
        """Note who the session is with.

        `peer`: user_id, session_key, chat_id, chat_type, thread_id, display_name, origin_json.
        """
        unknown = sorted(peer.keys() - set(_PEER))
        if unknown:
            raise TypeError(f"record_gateway_session_peer() got an unexpected keyword argument {unknown[0]!r}")
        changes = {"source": source, **{name: value for name, value in peer.items() if value is not None}}
        self._write(lambda conn: change_session(conn, session_id, changes))

    def find_latest_gateway_session_for_peer(self, *, source: str, **peer: Any) -> Row | None:
        """The newest session with this peer that has not ended."""
        unknown = sorted(peer.keys() - set(_MATCH))
        if unknown:
            raise TypeError(f"find_latest_gateway_session_for_peer() got an unexpected keyword argument {unknown[0]!r}")
        given = {"source": source, **{name: value for name, value in peer.items() if value is not None}}
        where = " AND ".join(f"s.{name} = ?" for name in given)
        rows = self._sessions(
            f"WHERE {where} AND s.ended_at IS NULL ORDER BY s.started_at DESC LIMIT 1", tuple(given.values())
        )
        return rows[0] if rows else None

    def find_session_by_origin(
        self, *, platform: str, chat_id: str, thread_id: str | None = None, user_id: str | None = None
    ) -> str | None:
        """The id of the newest open session of a chat."""
        row = self.find_latest_gateway_session_for_peer(
            source=platform, chat_id=chat_id, thread_id=thread_id, user_id=user_id
        )
        return row["id"] if row else None

    def list_gateway_sessions(self, *, platform: str | None = None, active_only: bool = True) -> list[Row]:
        """Sessions that belong to a chat, newest first."""
        where = "WHERE s.session_key IS NOT NULL" + (" AND s.ended_at IS NULL" if active_only else "")
        if platform is not None:
            return self._sessions(f"{where} AND s.source = ? ORDER BY s.started_at DESC", (platform,))
        return self._sessions(f"{where} ORDER BY s.started_at DESC")

    def save_gateway_routing_entry(self, session_key: str, entry_json: str, *, scope: str = "") -> None:
        """Set where messages of `session_key` go."""
        self._write(lambda conn: _save(conn, scope, {session_key: entry_json}))

    def replace_gateway_routing_entries(self, entries: dict[str, str], *, scope: str = "") -> None:
        """Set all routes of a scope at once."""

        def work(conn: sqlite3.Connection) -> None:
            conn.execute("DELETE FROM gateway_routing WHERE scope = ?", (scope,))
            _save(conn, scope, entries)

        self._write(work)

    def load_gateway_routing_entries(self, *, scope: str = "") -> dict[str, str]:
        return dict(self._all("SELECT session_key, entry_json FROM gateway_routing WHERE scope = ?", (scope,)))

    def delete_gateway_routing_entries(self, session_keys: list[str], *, scope: str = "") -> None:
        def work(conn: sqlite3.Connection) -> None:
            conn.executemany(
                "DELETE FROM gateway_routing WHERE scope = ? AND session_key = ?",
                [(scope, session_key) for session_key in session_keys],
            )

        self._write(work)


def _save(conn: sqlite3.Connection, scope: str, entries: dict[str, str]) -> None:
    conn.executemany(
        "INSERT INTO gateway_routing(scope, session_key, entry_json) VALUES (?, ?, ?)"
        " ON CONFLICT(scope, session_key) DO UPDATE SET entry_json = excluded.entry_json",
        [(scope, session_key, entry) for session_key, entry in entries.items()],
    )


_CLEAR = "UPDATE sessions SET handoff_state = ?, handoff_error = ? WHERE id = ?"


class HandoffCalls(DbBase):
    """Calls on the hand-over state of a session."""

    def request_handoff(self, session_id: str, platform: str) -> bool:
        """Ask `platform` to take the session; False when a hand-over is under way or there is no session."""
        sql = (
            "UPDATE sessions SET handoff_state = 'pending', handoff_platform = ?, handoff_error = NULL"
            " WHERE id = ? AND coalesce(handoff_state, '') NOT IN ('pending', 'running')"
        )
        return bool(self._execute(sql, (platform, session_id)))

    def claim_handoff(self, session_id: str) -> bool:
        """Take a pending hand-over; of several that try, one gets it."""
        sql = "UPDATE sessions SET handoff_state = 'running' WHERE id = ? AND handoff_state = 'pending'"
        return bool(self._execute(sql, (session_id,)))

    def complete_handoff(self, session_id: str) -> None:
        self._execute(_CLEAR, ("completed", None, session_id))

    def fail_handoff(self, session_id: str, error: str) -> None:
        self._execute(_CLEAR, ("failed", error, session_id))

    def get_handoff_state(self, session_id: str) -> Row | None:
        """`state`, `platform` and `error`, or None when nothing was asked for."""
        sql = "SELECT handoff_state, handoff_platform, handoff_error FROM sessions WHERE id = ?"
        row = self._one(sql, (session_id,))
        if row is None or row[0] is None:
            return None
        return {"state": row[0], "platform": row[1], "error": row[2]}

    def list_pending_handoffs(self) -> list[Row]:
        """The sessions that wait for a platform, oldest first."""
        return self._sessions("WHERE s.handoff_state = 'pending' ORDER BY s.started_at")
