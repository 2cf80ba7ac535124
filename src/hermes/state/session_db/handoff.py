"""Handing a session over to a platform: pending, running, completed or failed."""

from hermes.state.session_db.base import DbBase, Row

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
