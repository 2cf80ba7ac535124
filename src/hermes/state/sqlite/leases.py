"""The lease of a session: one owner at a time, told apart by a number that only it knows, its fence.

Every commit of a turn looks for its fence in the transaction that writes. So it does not matter how somebody came to
believe that an owner is gone, by a wrong clock or of a process that was only stopped for a while: when that one wakes
up, it finds its fence gone and writes nothing more.
"""

import sqlite3
import time

from hermes.errors import LeaseLost, SessionInUse, SessionMoved
from hermes.ops import LEASE_S, Lease, LeaseHeld, LeaseReleased, LeaseTaken
from hermes.state import owner
from hermes.state.sqlite.session_continuation import COMPRESSION, tip_of

MAX_AHEAD_S = 3600.0  # renewed this far in the future: a clock was put back, and nothing is known about the owner

_TAKE = (
    "INSERT INTO leases(fence, session_id, owner, since, renewed_at) SELECT ?1, id, ?3, ?4, ?4 FROM sessions"
    " WHERE id = ?2 AND message_count = ?5 AND end_reason IS NOT 'compression' ON CONFLICT DO NOTHING"
)
_TAKE_ANYWAY = "INSERT INTO leases(fence, session_id, owner, since, renewed_at) VALUES (?1, ?2, ?3, ?4, ?4)"
_FIND = "SELECT fence, owner, since, renewed_at FROM leases WHERE session_id = ?"
_STATE = "SELECT message_count, end_reason FROM sessions WHERE id = ?"


def take(conn: sqlite3.Connection, op: LeaseTaken, taker: str, at: float) -> int:
    """Do what `op` says, inside the caller's transaction. In the common case it is one statement."""
    values = (op.fence, op.session_id, taker, at)
    if conn.execute(_TAKE, (*values, op.message_count)).rowcount:
        return 0
    found = conn.execute(_FIND, (op.session_id,)).fetchone()
    if found is not None:
        if found[0] != op.replaces and _is_held(found, at):
            raise SessionInUse(op.session_id, owner.described(found[1]), found[2])
        conn.execute("DELETE FROM leases WHERE fence = ?", (found[0],))
    state = conn.execute(_STATE, (op.session_id,)).fetchone()
    if state is None:
        raise SessionMoved(f"no session {op.session_id!r}")
    if state[0] != op.message_count:
        raise SessionMoved(f"session {op.session_id!r} has got other messages meanwhile")
    if state[1] == COMPRESSION and (tip := tip_of(conn, op.session_id)) != op.session_id:
        raise SessionMoved(f"session {op.session_id!r} goes on as {tip!r}")
    conn.execute(_TAKE_ANYWAY, values)
    return 0


def hold(conn: sqlite3.Connection, op: LeaseHeld, at: float) -> int:
    """`LeaseLost` unless the lease is there."""
    if op.renews:
        found = conn.execute("UPDATE leases SET renewed_at = ? WHERE fence = ?", (at, op.fence)).rowcount
    else:
        found = conn.execute("SELECT 1 FROM leases WHERE fence = ?", (op.fence,)).fetchone()
    if not found:
        raise _lost(conn, op.session_id)
    return 0


def release(conn: sqlite3.Connection, op: LeaseReleased) -> int:
    if not conn.execute("DELETE FROM leases WHERE fence = ?", (op.fence,)).rowcount:
        raise _lost(conn, op.session_id)
    return 0


def move(conn: sqlite3.Connection, old: str, new: str, fence: int) -> None:
    """The session goes on under another id: with the lease of whoever made it so, and without anybody else's."""
    if not conn.execute("UPDATE leases SET session_id = ? WHERE fence = ?", (new, fence)).rowcount:
        conn.execute("DELETE FROM leases WHERE session_id = ?", (old,))


def lease_of(conn: sqlite3.Connection, session_id: str) -> Lease | None:
    """Who works on the session, if somebody does."""
    found = conn.execute(_FIND, (session_id,)).fetchone()
    if found is None or not _is_held(found, time.time()):
        return None
    return Lease(found[0], owner.described(found[1]), found[2], found[1])


def _is_held(found: tuple[int, str, float, float], at: float) -> bool:
    return -MAX_AHEAD_S < at - found[3] < LEASE_S and owner.may_be_alive(found[1])


def _lost(conn: sqlite3.Connection, session_id: str) -> LeaseLost:
    found = conn.execute(_FIND, (session_id,)).fetchone()
    tip = tip_of(conn, session_id)
    if found is not None:
        by = f"was taken over by {owner.described(found[1])}"
    elif tip != session_id:
        by = f"was compressed by another process and goes on as {tip!r}"
    else:
        by = "was taken over by another process, which is done with it"
    return LeaseLost(
        f"session {session_id!r} {by}, because nothing was heard from this turn for {LEASE_S:.0f} s; the turn stopped, "
        "and nothing of it was stored since"
    )
