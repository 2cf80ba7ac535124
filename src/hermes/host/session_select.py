"""Which sessions are meant: by a name, or by what they are like."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from hermes.config import paths
from hermes.errors import SessionNotFound
from hermes.host.installation import Installation
from hermes.host.session_text import age, title_of
from hermes.state.stores import has_sessions, place_of

if TYPE_CHECKING:
    from hermes.state import SessionDB

SHOWN = 5  # candidates told of a beginning that fits several
MAX_TITLE_CHARS = 100
DAY_S = 86_400
Row = Mapping[str, Any]
_COUNTS = {"messages": "message_count", "tool_calls": "tool_call_count"}


@contextmanager
def open_sessions(installation: Installation, *, make: bool = False) -> "Iterator[SessionDB | None]":
    """The home's sessions; None when there is no store yet, unless one is to be made. Looking never makes one."""
    place = place_of(installation.home)
    if not make and not has_sessions(place):
        yield None
        return
    from hermes.state import SessionDB  # paid by whoever has sessions

    paths.made(installation.home)
    with SessionDB(place) as db:
        yield db


def no_sessions(name: str | None) -> SessionNotFound:
    """The error for a session asked of a home that has none."""
    asked = f"there is no session {name!r}" if name else "there are no sessions yet"
    return SessionNotFound(f"{asked}; start one with: hermes chat -q …")


def find_session(db: "SessionDB", name: str) -> str:
    """The id of the session called `name`: an id, the beginning of one, or a title."""
    found = db.resolve_session_id(name) or db.resolve_session_by_title(_title(name))
    if found is not None:
        return found
    several = [row for row in db.search_sessions_by_id(name, limit=SHOWN) if str(row["id"]).startswith(name)]
    if name and len(several) > 1:
        named = "".join(f"\n  {_candidate(db, row)}" for row in several)
        raise SessionNotFound(f"{name!r} is the beginning of several sessions; give more of it:{named}")
    near = db.list_sessions_rich(search_query=name, limit=1) if name.strip() else []
    hint = f"; did you mean {near[0]['title']!r} ({near[0]['id']})?" if near and near[0].get("title") else ""
    raise SessionNotFound(f"there is no session {name!r}{hint or '; see: hermes sessions list'}")


def _candidate(db: "SessionDB", row: Row) -> str:
    """One of several that may be meant: id, age, title or how it began."""
    whole = db.list_sessions_rich(id_query=str(row["id"]), limit=1, include_children=True, include_archived=True) or [
        dict(row)
    ]
    at = whole[0].get("last_active") or row.get("started_at")
    return f"{row['id']}  {age(at)}  {title_of({**row, **whole[0]})}".rstrip()


def _title(name: str) -> str:
    """A name longer than any title is none, and no reason for another error."""
    return name if len(name) <= MAX_TITLE_CHARS else ""


class SessionChoice(Struct, frozen=True, kw_only=True):
    """What a session must be like; whatever is None does not matter."""

    source: str | None = None
    older_than: float | None = None
    newer_than: float | None = None
    before: float | None = None
    after: float | None = None
    title: str | None = None
    end_reason: str | None = None
    cwd: str | None = None
    model: str | None = None
    provider: str | None = None
    user: str | None = None
    chat_id: str | None = None
    branch: str | None = None
    min_messages: int | None = None
    max_messages: int | None = None
    min_tool_calls: int | None = None
    max_tool_calls: int | None = None
    min_tokens: int | None = None
    max_tokens: int | None = None
    min_cost: float | None = None
    max_cost: float | None = None

    @property
    def is_empty(self) -> bool:
        return all(getattr(self, name) is None for name in self.__struct_fields__)

    def select(self, db: "SessionDB") -> list[Row]:
        """The sessions that match, oldest first, archived ones included."""
        rows = db.search_sessions(self.source, limit=-1)
        return [row for row in reversed(rows) if self.matches(row)]

    def matches(self, row: Row) -> bool:
        """Whether one session is meant. Its age is counted from its end, or from its start while it is open."""
        return self._has_words(row) and self._has_time(row) and self._has_size(row)

    def _has_words(self, row: Row) -> bool:
        parts = (
            (self.title, row.get("title")),
            (self.cwd, row.get("cwd")),
            (self.model, row.get("model")),
            (self.branch, row.get("git_branch")),
        )
        wholes = (
            (self.end_reason, row.get("end_reason")),
            (self.provider, row.get("billing_provider")),
            (self.user, row.get("user_id")),
            (self.chat_id, row.get("chat_id")),
        )
        return all(wanted is None or wanted.lower() in str(have or "").lower() for wanted, have in parts) and all(
            wanted is None or wanted == have for wanted, have in wholes
        )

    def _has_time(self, row: Row) -> bool:
        at = float(row.get("ended_at") or row["started_at"])
        age = time.time() - at
        return (
            (self.older_than is None or age >= self.older_than)
            and (self.newer_than is None or age < self.newer_than)
            and (self.before is None or at < self.before)
            and (self.after is None or at >= self.after)
        )

    def _has_size(self, row: Row) -> bool:
        sizes: dict[str, float | None] = {name: float(row.get(column) or 0) for name, column in _COUNTS.items()}
        sizes["tokens"] = float((row.get("input_tokens") or 0) + (row.get("output_tokens") or 0))
        cost = row.get("actual_cost_usd") if row.get("actual_cost_usd") is not None else row.get("estimated_cost_usd")
        sizes["cost"] = cost
        for name, size in sizes.items():
            least, most = getattr(self, f"min_{name}"), getattr(self, f"max_{name}")
            if least is None and most is None:
                continue
            if size is None:  # a price that nobody knows is neither small nor large
                return False
            if (least is not None and size < least) or (most is not None and size > most):
                return False
        return True


def ended_sessions(
    db: "SessionDB | None", wanted: SessionChoice, *, with_archived: bool, with_open: bool = False
) -> list[str]:
    """The ids of sessions that have ended and match, oldest first; `with_open`: also those that a crash left open."""
    if db is None:
        return []
    rows: list[Row] = list(reversed(db.search_sessions(wanted.source, limit=-1)))
    if with_open:
        rows = [row if row.get("ended_at") else _as_ended(db, row) for row in rows]
    found = [row for row in rows if row.get("ended_at") and wanted.matches(row)]
    return [str(row["id"]) for row in found if with_archived or not row.get("archived")]


def _as_ended(db: "SessionDB", row: Row) -> Row:
    """An open session as if it had ended with its last message, when that is long enough ago for nobody to be in it."""
    last = db.get_messages(str(row["id"]), limit=1, offset=max(0, int(row["message_count"]) - 1))
    at = float(last[0]["timestamp"]) if last else float(row["started_at"])
    return {**row, "ended_at": at} if time.time() - at > DAY_S else row
