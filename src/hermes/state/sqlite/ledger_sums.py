"""Sums over the ledger, and whether they leave room for one more attempt."""

import sqlite3
from typing import Any

from hermes.spend import NOTHING, SpendLimit, Spent
from hermes.state import owner

MAX_KEPT = 256
_EVER = 2**62

# A child's calls are its parent's, and a session that is compressed goes on under another id.
_OF_FAMILY = (
    " AND session_id IN (WITH RECURSIVE up(id, parent) AS (SELECT id, parent_session_id FROM sessions WHERE id = ?"
    " UNION SELECT s.id, s.parent_session_id FROM sessions s JOIN up ON s.id = up.parent),"
    " tree(id) AS (SELECT coalesce((SELECT id FROM up WHERE parent IS NULL), ?)"
    " UNION SELECT s.id FROM sessions s JOIN tree ON s.parent_session_id = tree.id) SELECT id FROM tree)"
)
_SUMS = (
    "SELECT coalesce(sum(coalesce(cost_usd, held_usd)), 0),"
    " coalesce(sum(CASE WHEN output_tokens IS NULL THEN held_tokens"
    " ELSE coalesce(input_tokens, 0) + output_tokens + coalesce(cache_read_tokens, 0)"
    " + coalesce(cache_write_tokens, 0) END), 0), coalesce(sum(latency_ms), 0) / 1000.0 FROM attempts "
)
_CLOSED = " WHERE outcome IS NOT NULL AND started_at >= ? AND id >= ? AND id < ?"
_OPEN = (
    "SELECT id, owner, held_usd, held_tokens, max(0, ? - started_at)"
    " FROM attempts INDEXED BY idx_attempts_open WHERE outcome IS NULL AND started_at >= ?"
)


class Sums:
    """The sums that caps are held against. What is closed for good is added up once in the life of a process."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str | None, float], tuple[int, Spent]] = {}  # up to a row, by whom and since when

    def require_room(self, conn: sqlite3.Connection, limits: tuple[SpendLimit, ...], now: float) -> None:
        """`BudgetExceeded` unless each limit has room for one more attempt."""
        for limit in limits:
            family, values = _family(limit.session_id)
            rows = conn.execute(_OPEN + family, (now, limit.since, *values)).fetchall()
            # Those of a process that is gone come to nothing more.
            alive = [(row_id, Spent(*held)) for row_id, begun_by, *held in rows if owner.may_be_alive(begun_by)]
            settled = min((row_id for row_id, _ in alive), default=_EVER)
            spent_so_far = self._spent(conn, limit, settled)
            limit.require_room(spent_so_far, sum((held for _, held in alive), NOTHING))

    def _spent(self, conn: sqlite3.Connection, limit: SpendLimit, settled: int) -> Spent:
        """Over closed attempts; rows below `settled` will not change any more."""
        key = (limit.session_id, limit.since)
        newest = conn.execute("SELECT coalesce(max(id), 0) FROM attempts").fetchone()[0]
        upto, known = self._kept.get(key, (0, NOTHING))
        if upto > newest + 1:
            upto, known = 0, NOTHING  # another file has taken the place of the one that was added up
        edge = max(upto, min(settled, newest + 1))
        if edge > upto:
            known = known + spent(conn, limit.since, limit.session_id, rows=(upto, edge))
            if len(self._kept) >= MAX_KEPT:
                self._kept.clear()
            self._kept[key] = (edge, known)
        return known + spent(conn, limit.since, limit.session_id, rows=(edge, _EVER)) if edge <= newest else known


def spent(
    conn: sqlite3.Connection, since: float = 0.0, session_id: str | None = None, rows: tuple[int, int] = (0, _EVER)
) -> Spent:
    """Over closed attempts since a time, of a session's family or of everybody."""
    family, values = _family(session_id)
    by = "NOT INDEXED" if rows[0] else ""  # the few newest rows are found by their ids
    found: tuple[Any, ...] = conn.execute(_SUMS + by + _CLOSED + family, (since, *rows, *values)).fetchone()
    return Spent(*found)


def _family(session_id: str | None) -> tuple[str, tuple[str, ...]]:
    return ("", ()) if session_id is None else (_OF_FAMILY, (session_id, session_id))
