"""The calls of `SessionDB` for messaging gateways: who a session is with, which chat leads where, hand-overs."""

from typing import TYPE_CHECKING, Any

from hermes.state.queries import Row, SessionFilter
from hermes.state.session_calls import change_session, find_session, given_of, refuse_unknown, values_of

if TYPE_CHECKING:
    from hermes.state.sessions import SessionDB

_CHAT = ("source", "user_id", "session_key", "chat_id", "chat_type", "thread_id")
_PEER = (*_CHAT, "display_name", "origin_json")


def record_gateway_session_peer(db: "SessionDB", session_id: str, *, source: str, **peer: Any) -> None:
    """Note who the session is with.

    `peer`: user_id, session_key, chat_id, chat_type, thread_id, display_name, origin_json.
    """
    refuse_unknown("record_gateway_session_peer", peer, _PEER)
    change_session(db.queries, session_id, **{"source": source, **given_of(peer)})


def find_latest_gateway_session_for_peer(db: "SessionDB", *, source: str, **peer: Any) -> Row | None:
    """The newest session with this peer that has not ended."""
    refuse_unknown("find_latest_gateway_session_for_peer", peer, _CHAT)
    return find_session(db.queries, equal={"source": source, **given_of(peer), "ended_at": None})


def find_session_by_origin(
    db: "SessionDB", *, platform: str, chat_id: str, thread_id: str | None = None, user_id: str | None = None
) -> str | None:
    """The id of the newest open session of a chat."""
    row = db.find_latest_gateway_session_for_peer(
        source=platform, chat_id=chat_id, thread_id=thread_id, user_id=user_id
    )
    return row["id"] if row else None


def list_gateway_sessions(db: "SessionDB", *, platform: str | None = None, active_only: bool = True) -> list[Row]:
    """Sessions that belong to a chat, newest first."""
    equal: Row = {"ended_at": None} if active_only else {}
    equal |= {} if platform is None else {"source": platform}
    return db.queries.sessions(SessionFilter(filled=("session_key",), equal=equal))


def save_gateway_routing_entry(db: "SessionDB", session_key: str, entry_json: str, *, scope: str = "") -> None:
    """Set where messages of `session_key` go."""
    db.queries.change_routes(scope, {session_key: entry_json})


def replace_gateway_routing_entries(db: "SessionDB", entries: dict[str, str], *, scope: str = "") -> None:
    """Set all routes of a scope at once."""
    db.queries.change_routes(scope, entries, remove=None)


def load_gateway_routing_entries(db: "SessionDB", *, scope: str = "") -> dict[str, str]:
    return db.queries.routes(scope)


def delete_gateway_routing_entries(db: "SessionDB", session_keys: list[str], *, scope: str = "") -> None:
    db.queries.change_routes(scope, {}, remove=session_keys)


def request_handoff(db: "SessionDB", session_id: str, platform: str) -> bool:
    """Ask `platform` to take the session; False when a hand-over is under way or there is no session."""
    is_free = SessionFilter(ids=(session_id,), other_than={"handoff_state": ("pending", "running")})
    wanted = {"handoff_state": "pending", "handoff_platform": platform, "handoff_error": None}
    return bool(db.queries.change_sessions(is_free, wanted))


def claim_handoff(db: "SessionDB", session_id: str) -> bool:
    """Take a pending hand-over; of several that try, one gets it."""
    is_pending = SessionFilter(ids=(session_id,), equal={"handoff_state": "pending"})
    return bool(db.queries.change_sessions(is_pending, {"handoff_state": "running"}))


def complete_handoff(db: "SessionDB", session_id: str) -> None:
    change_session(db.queries, session_id, handoff_state="completed", handoff_error=None)


def fail_handoff(db: "SessionDB", session_id: str, error: str) -> None:
    change_session(db.queries, session_id, handoff_state="failed", handoff_error=error)


def get_handoff_state(db: "SessionDB", session_id: str) -> Row | None:
    """`state`, `platform` and `error`, or None when nothing was asked for."""
    state, platform, error = values_of(db.queries, session_id, "handoff_state", "handoff_platform", "handoff_error")
    return None if state is None else {"state": state, "platform": platform, "error": error}


def list_pending_handoffs(db: "SessionDB") -> list[Row]:
    """The sessions that wait for a platform, oldest first."""
    return db.queries.sessions(SessionFilter(equal={"handoff_state": "pending"}, order="oldest"))
