"""The calls of `SessionDB` on lineage: what a session grew out of, what it became, where to go on; and compression."""

from typing import TYPE_CHECKING

from hermes.state.queries import MessageFilter, Row, SessionFilter
from hermes.state.session_calls import change_session, find_session, values_of

if TYPE_CHECKING:
    from hermes.state.sessions import SessionDB

MAX_STEPS = 32


def resolve_resume_session_id(db: "SessionDB", session_id: str) -> str:
    """Where to go on: the tip of a compressed session; else the session, or its newest child with messages."""
    tip = db.queries.lineage(session_id).after[-1]
    current, seen = tip, {tip}
    for step in range(MAX_STEPS + 1):
        if db.queries.count_messages(MessageFilter(session_id=current, is_active=None, limit=1)):
            return current
        child = find_session(db.queries, ("id",), equal={"parent_session_id": current}) if step < MAX_STEPS else None
        if child is None or child["id"] in seen:
            break
        current = child["id"]
        seen.add(current)
    return tip


def get_compression_tip(db: "SessionDB", session_id: str) -> str | None:
    """The session that continues this one after compressions; itself when there was none."""
    return db.queries.lineage(session_id).after[-1]


def get_compression_lineage(db: "SessionDB", session_id: str) -> list[str]:
    """The ids from the root to the tip, as compression made them."""
    line = db.queries.lineage(session_id)
    return [*line.before, *line.after]


def get_conversation_root(db: "SessionDB", session_id: str) -> str:
    """The first session of the lineage."""
    return db.queries.lineage(session_id).ancestors[0]


def finalize_orphaned_compression_sessions(db: "SessionDB") -> int:
    """End sessions whose child continued them although they were never ended; how many."""
    spoken = SessionFilter(filled=("parent_session_id", "title"), least_messages=1)
    children = db.queries.sessions(spoken, ("parent_session_id", "title"))
    parents = db.queries.sessions(
        SessionFilter(ids=[row["parent_session_id"] for row in children], equal={"ended_at": None}, filled=("title",)),
        ("id", "title"),
    )
    begin = {row["id"]: f"{row['title']} #" for row in parents}
    orphaned = {
        row["parent_session_id"]
        for row in children
        if row["title"].startswith(begin.get(row["parent_session_id"], "\0"))
    }
    is_open = SessionFilter(ids=sorted(orphaned), equal={"ended_at": None})
    return db.queries.change_sessions(is_open, {"ended_at": db.clock(), "end_reason": "orphaned_compression"})


def try_acquire_compression_lock(db: "SessionDB", session_id: str, holder: str, ttl_seconds: float = 300.0) -> bool:
    """Become the one who compresses the session, for `ttl_seconds`; whether it worked."""
    now = db.clock()
    return db.queries.hold_compression_lock(session_id, holder, now, now + ttl_seconds)


def refresh_compression_lock(db: "SessionDB", session_id: str, holder: str, ttl_seconds: float = 300.0) -> bool:
    """Keep it longer; False when it is no longer held."""
    return db.queries.extend_compression_lock(session_id, holder, db.clock() + ttl_seconds)


def release_compression_lock(db: "SessionDB", session_id: str, holder: str) -> None:
    db.queries.extend_compression_lock(session_id, holder, None)


def get_compression_lock_holder(db: "SessionDB", session_id: str) -> str | None:
    held = db.queries.compression_lock(session_id)
    return held[0] if held is not None and held[1] > db.clock() else None


def record_compression_failure_cooldown(
    db: "SessionDB", session_id: str, cooldown_until: float, error: str | None = None
) -> None:
    """No compression of this session before `cooldown_until`."""
    change_session(
        db.queries, session_id, compression_failure_cooldown_until=cooldown_until, compression_failure_error=error
    )


def clear_compression_failure_cooldown(db: "SessionDB", session_id: str) -> None:
    change_session(db.queries, session_id, compression_failure_cooldown_until=None, compression_failure_error=None)


def get_compression_failure_cooldown(db: "SessionDB", session_id: str) -> Row | None:
    """`cooldown_until` and `error` while one is running, else None."""
    names = ("compression_failure_cooldown_until", "compression_failure_error")
    until, error = values_of(db.queries, session_id, *names)
    return {"cooldown_until": until, "error": error} if until is not None and until > db.clock() else None


def get_compression_fallback_streak(db: "SessionDB", session_id: str) -> int:
    return int(values_of(db.queries, session_id, "compression_fallback_streak")[0] or 0)


def set_compression_fallback_streak(db: "SessionDB", session_id: str, streak: int) -> None:
    change_session(db.queries, session_id, compression_fallback_streak=streak)
