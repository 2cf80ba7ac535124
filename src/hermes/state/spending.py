"""Sums over the ledger, and whether they leave room for one more attempt."""

import sqlite3
from typing import Any

from hermes.spend import SpendLimit, Spent
from hermes.state import owner

# A child's calls are its parent's, and a session that is compressed goes on under another id.
_OF_FAMILY = (
    " AND session_id IN (WITH RECURSIVE up(id, parent) AS (SELECT id, parent_session_id FROM sessions WHERE id = ?"
    " UNION SELECT s.id, s.parent_session_id FROM sessions s JOIN up ON s.id = up.parent),"
    " tree(id) AS (SELECT coalesce((SELECT id FROM up WHERE parent IS NULL), ?)"
    " UNION SELECT s.id FROM sessions s JOIN tree ON s.parent_session_id = tree.id) SELECT id FROM tree)"
)
_CLOSED = (
    "SELECT coalesce(sum(coalesce(cost_usd, held_usd)), 0),"
    " coalesce(sum(CASE WHEN output_tokens IS NULL THEN held_tokens"
    " ELSE coalesce(input_tokens, 0) + output_tokens + coalesce(cache_read_tokens, 0)"
    " + coalesce(cache_write_tokens, 0) END), 0), coalesce(sum(latency_ms), 0) / 1000.0"
    " FROM attempts WHERE outcome IS NOT NULL AND started_at >= ?"
)
_OPEN = (
    "SELECT owner, sum(held_usd), sum(held_tokens), sum(max(0, ? - started_at))"
    " FROM attempts INDEXED BY idx_attempts_open WHERE outcome IS NULL AND started_at >= ?"
)


def require_room(conn: sqlite3.Connection, limits: tuple[SpendLimit, ...], now: float) -> None:
    """`BudgetExceeded` unless each limit has room for one more attempt."""
    for limit in limits:
        limit.require_room(spent(conn, limit.since, limit.session_id), _under_way(conn, limit, now))


def spent(conn: sqlite3.Connection, since: float = 0.0, session_id: str | None = None) -> Spent:
    """Over closed attempts since a time, of a session's family or of everybody."""
    family, values = _family(session_id)
    row: tuple[Any, ...] = conn.execute(_CLOSED + family, (since, *values)).fetchone()
    return Spent(*row)


def _under_way(conn: sqlite3.Connection, limit: SpendLimit, now: float) -> Spent:
    """What open attempts may come to. Those of a process that is gone come to nothing more."""
    family, values = _family(limit.session_id)
    rows = conn.execute(f"{_OPEN}{family} GROUP BY owner", (now, limit.since, *values)).fetchall()
    return sum((Spent(*sums) for begun_by, *sums in rows if owner.may_be_alive(begun_by)), Spent())


def _family(session_id: str | None) -> tuple[str, tuple[str, ...]]:
    return ("", ()) if session_id is None else (_OF_FAMILY, (session_id, session_id))
