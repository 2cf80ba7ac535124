"""The caps on what an agent may spend, and reports on what was spent."""

import sqlite3
import time
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from hermes.spend import NOTHING, Cap, SpendLimit, Spent

Answer = TypeVar("Answer")


class Caps(Struct, frozen=True, kw_only=True):
    """The caps of one agent."""

    turn: Cap = Cap()
    session: Cap = Cap()
    day: Cap = Cap()


NO_CAPS = Caps()


class SpendGuard:
    """What an agent's turn has spent, and the caps that hold for its next call. Helpers share their agent's guard.

    The caps of session and day are held by the store, where all processes meet: see `AttemptOpened.limits`.
    """

    def __init__(self, caps: Caps = NO_CAPS, now: Callable[[], float] = time.time) -> None:
        self._caps = caps
        self._now = now
        self._under_way: dict[str, Spent] = {}
        self.turn = NOTHING
        self.has_money_cap = any(cap.usd is not None for cap in (caps.turn, caps.session, caps.day))

    def __bool__(self) -> bool:
        return bool(self._caps.turn or self._caps.session or self._caps.day)

    def new_turn(self) -> None:
        """Forget what the last turn cost."""
        self.turn = NOTHING

    def limits(self, session_id: str | None) -> tuple[SpendLimit, ...]:
        """What the store is asked to hold the next call to."""
        limits = []
        if self._caps.session and session_id is not None:
            limits.append(SpendLimit(span="session", cap=self._caps.session, session_id=session_id))
        if self._caps.day:
            limits.append(SpendLimit(span="day", cap=self._caps.day, since=_midnight(self._now())))
        return tuple(limits)

    def enter(self, attempt_id: str, most: Spent) -> None:
        """A call that may come to `most` begins; `BudgetExceeded` when the turn has no room for it."""
        if self._caps.turn:
            under_way = sum(self._under_way.values(), NOTHING)
            SpendLimit(span="turn", cap=self._caps.turn).require_room(self.turn, under_way)
        self._under_way[attempt_id] = most

    def leave(self, attempt_id: str, spent: Spent) -> None:
        """The call has ended, also one that failed."""
        if self._under_way.pop(attempt_id, None) is not None:
            self.turn = self.turn + spent


class _Readable(Protocol):
    def read(self, work: Callable[[sqlite3.Connection], Answer]) -> Answer: ...


def _midnight(now: float) -> float:
    day = time.localtime(now)
    return time.mktime((day.tm_year, day.tm_mon, day.tm_mday, 0, 0, 0, 0, 0, -1))


# -- reports -----------------------------------------------------------------------------------------------------

TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
GROUPS = {
    "day": {"day": "date(started_at, 'unixepoch', 'localtime')"},
    "model": {"provider": "provider", "model": "model"},
    "purpose": {"purpose": "purpose"},
    "session": {"session_id": "coalesce(session_id, '')"},
    "all": {"provider": "provider", "model": "model", "purpose": "purpose"},
}


def usage_rows(store: _Readable, by: str, since: float = 0.0) -> list[dict[str, Any]]:
    """Calls, tokens, seconds and dollars of the ledger, one row per group of `GROUPS[by]`.

    `failed` counts attempts without an answer, `uncounted` answers whose tokens nobody told, `unpriced` answers
    without a price.
    """
    group = GROUPS[by]
    sums = ", ".join(f"coalesce(sum({name}), 0)" for name in TOKENS)
    order = "1 DESC" if by == "day" else "calls DESC, 1"
    sql = (  # names come from GROUPS and TOKENS above, never from outside
        f"SELECT {', '.join(group.values())}, count(*) AS calls, {sums}, sum(cost_usd),"  # noqa: S608
        " coalesce(sum(latency_ms), 0) / 1000.0,"
        " count(*) FILTER (WHERE outcome IS NULL OR outcome NOT IN ('ok', 'partial')),"
        " count(*) FILTER (WHERE outcome IN ('ok', 'partial') AND output_tokens IS NULL),"
        " count(*) FILTER (WHERE outcome IN ('ok', 'partial') AND cost_usd IS NULL)"
        f" FROM attempts WHERE started_at >= ? GROUP BY {', '.join(group.values())} ORDER BY {order}"
    )
    names = (*group, "calls", *TOKENS, "cost_usd", "seconds", "failed", "uncounted", "unpriced")
    found = store.read(lambda conn: conn.execute(sql, (since,)).fetchall())
    return [dict(zip(names, row, strict=True)) for row in found]
