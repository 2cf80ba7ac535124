"""The calls of `SessionDB` that delete sessions, give their space back, or carry them from store to store."""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.config.paths import results_dir
from hermes.errors import SessionInUse, UserError
from hermes.state.message_rows import message_row, seconds
from hermes.state.queries import Row, SessionFilter
from hermes.state.schema import MESSAGE_COLUMNS, SESSION_COLUMNS
from hermes.state.session_calls import find_session, given_of, ids_of, messages_of, session_filter

if TYPE_CHECKING:
    from hermes.state.sessions import SessionDB

LAST_PRUNE = "last_auto_prune"
DAY_S = 86_400.0
GHOST_AGE_S = 60.0  # an empty session younger than this may be about to get its first message
_DERIVED = ("id", "message_count", "tool_call_count")


def delete_session(db: "SessionDB", session_id: str, sessions_dir: Path | None = None) -> bool:
    """Delete a session with its messages and files; children lose their parent. False when there is none."""
    if (lease := db.queries.lease(session_id)) is not None:
        raise SessionInUse(session_id, lease.holder, lease.since)
    return bool(db.delete_sessions([session_id], sessions_dir))


def delete_sessions(db: "SessionDB", session_ids: Iterable[str], sessions_dir: Path | None = None) -> int:
    """Delete several; how many there were. The space goes back to the file system. One that is in use stays."""
    count = 0
    for session_id in session_ids:
        if db.queries.lease(session_id) is None and db.queries.delete_session(session_id):
            count += 1
            _remove_files(session_id, sessions_dir)
            if db.store.path is not None:
                shutil.rmtree(results_dir(db.store.path.parent, session_id), ignore_errors=True)
    if count:
        db.queries.reclaim("pages")
    return count


def delete_session_if_empty(db: "SessionDB", session_id: str, sessions_dir: Path | None = None) -> bool:
    """Delete it when nothing was said in it; whether it was."""
    empty = find_session(db.queries, ("id",), ids=(session_id,), empty_before=db.clock() + 1)
    return empty is not None and db.delete_session(session_id, sessions_dir)


def count_empty_sessions(db: "SessionDB") -> int:
    return db.queries.count_sessions(SessionFilter(empty_before=db.clock() - GHOST_AGE_S))


def delete_empty_sessions(db: "SessionDB", sessions_dir: Path | None = None) -> int:
    """Delete sessions in which nothing was ever said; how many."""
    return db.delete_sessions(ids_of(db.queries, SessionFilter(empty_before=db.clock() - GHOST_AGE_S)), sessions_dir)


def prune_empty_ghost_sessions(db: "SessionDB", sessions_dir: Path | None = None) -> int:
    """The same, under its older name."""
    return db.delete_empty_sessions(sessions_dir)


def list_prune_candidates(
    db: "SessionDB", older_than_days: float | None = None, source: str | None = None, **filters: Any
) -> list[Row]:
    """The ended sessions that `prune_sessions` would delete, oldest first."""
    return db.queries.sessions(_ended_before(db, older_than_days, source, filters))


def prune_sessions(
    db: "SessionDB",
    older_than_days: float | None = 90,
    source: str | None = None,
    sessions_dir: Path | None = None,
    **filters: Any,
) -> int:
    """Delete sessions that ended longer ago; how many. Open ones are never pruned."""
    count = db.delete_sessions(ids_of(db.queries, _ended_before(db, older_than_days, source, filters)), sessions_dir)
    db.queries.reclaim("blobs")
    return count


def archive_sessions(
    db: "SessionDB", older_than_days: float | None = None, source: str | None = None, **filters: Any
) -> int:
    """Hide sessions that ended longer ago from lists; how many."""
    where = _ended_before(db, older_than_days, source, filters)
    return db.queries.change_sessions(where, {"archived": 1})


def maybe_auto_prune_and_vacuum(
    db: "SessionDB",
    retention_days: int = 90,
    min_interval_hours: int = 24,
    vacuum: bool = True,
    sessions_dir: Path | None = None,
) -> Row:
    """Prune when the last time was long enough ago; says what was done."""
    now, last = db.clock(), db.get_meta(LAST_PRUNE)
    if last is not None and now - float(last) < min_interval_hours * 3600:
        return {"skipped": True, "pruned": 0, "vacuumed": False}
    db.set_meta(LAST_PRUNE, repr(now))
    pruned = db.prune_sessions(retention_days, sessions_dir=sessions_dir)
    if pruned and vacuum:
        db.vacuum()
    return {"skipped": False, "pruned": pruned, "vacuumed": bool(pruned and vacuum)}


def vacuum(db: "SessionDB") -> int:
    """Merge the index, rewrite the file without gaps, drop unused blobs; the bytes that became free."""
    return db.queries.reclaim("all")


def storage_stats(db: "SessionDB") -> Row:
    """How much there is: sessions, also by source, messages, bytes of the file and of the blobs, and what is free."""
    return db.queries.figures()


def export_session(db: "SessionDB", session_id: str) -> Row | None:
    """All columns of the session and, under `messages`, of its messages; None when there is none."""
    row = db.get_session(session_id)
    return None if row is None else _with_messages(db, row)


def export_all(db: "SessionDB", source: str | None = None) -> list[Row]:
    """Every session of `source`, or every one, oldest first."""
    where = SessionFilter(equal={} if source is None else {"source": source}, order="oldest")
    return [_with_messages(db, row) for row in db.queries.sessions(where)]


def export_session_lineage(db: "SessionDB", session_id: str) -> Row | None:
    """The session with its ancestors and all that grew out of it, root first."""
    family = {row["id"]: row for row in db.queries.sessions(SessionFilter(ids=_family(db, session_id)))}
    rows = sorted(family.values(), key=lambda row: (row["started_at"], row["id"]))
    return {"session_id": session_id, "sessions": [_with_messages(db, row) for row in rows]} if rows else None


def import_sessions(db: "SessionDB", sessions: Sequence[Mapping[str, Any]]) -> Row:
    """Add exported sessions; one that is there already is left alone.

    Each session is its own transaction. Answers with `imported`, `skipped` and `errors` (id and reason).
    """
    report: Row = {"imported": 0, "skipped": 0, "errors": []}
    for session in sessions:
        try:
            added = _import(db, session)
        except (UserError, ValueError, KeyError, TypeError) as error:
            report["errors"].append({"id": str(session.get("id")), "error": str(error)})
            continue
        report["imported" if added else "skipped"] += 1
    return report


def _with_messages(db: "SessionDB", session: Row) -> Row:
    return {**session, "messages": messages_of(db.queries, session["id"], include_inactive=True)}


def _family(db: "SessionDB", session_id: str) -> list[str]:
    """A session, its ancestors, and all that grew out of any of them."""
    line = SessionFilter(ids=db.queries.lineage(session_id).ancestors)
    found = dict.fromkeys(ids_of(db.queries, line))  # a parent may be gone
    if session_id not in found:
        return []
    waiting = list(found)
    while waiting:
        children = ids_of(db.queries, SessionFilter(equal={"parent_session_id": waiting.pop()}))
        waiting += [child for child in children if child not in found]
        found |= dict.fromkeys(children)
    return list(found)


def _import(db: "SessionDB", session: Mapping[str, Any]) -> bool:
    session_id = session.get("id")
    if not isinstance(session_id, str) or not session_id:
        raise UserError("an exported session needs an 'id'")
    now = db.clock()
    columns = given_of({name: session.get(name) for name in SESSION_COLUMNS if name not in _DERIVED})
    columns |= {"id": session_id, "started_at": seconds(columns.get("started_at"), now)}
    messages = [message_row(_known(message), now) for message in session.get("messages") or []]
    if "title" in columns and db.queries.count_sessions(SessionFilter(equal={"title": columns["title"]})):
        del columns["title"]
    return db.queries.add_session(columns, messages)


def _ended_before(db: "SessionDB", days: float | None, source: str | None, filters: Row) -> SessionFilter:
    ended_before = db.clock() - (days or 0.0) * DAY_S
    options = {"include_archived": True, **filters, "source": source}
    return session_filter(options, ended_before=ended_before, order="oldest")


def _known(message: Mapping[str, Any]) -> Row:
    if "role" not in message:
        raise UserError("an exported message needs a 'role'")
    return {name: message[name] for name in MESSAGE_COLUMNS if name in message and name != "id"}


def _remove_files(session_id: str, sessions_dir: Path | None) -> None:
    if sessions_dir is None or "/" in session_id or session_id.startswith("."):
        return
    for name in (f"{session_id}.jsonl", f"{session_id}.json", f"session_{session_id}.json"):
        (sessions_dir / name).unlink(missing_ok=True)
