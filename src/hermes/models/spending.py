"""What was spent, and the caps on it: per turn, session and day, in money, tokens and time."""

import sqlite3
import time
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from hermes.errors import BudgetExceeded
from hermes.models.daemon import in_daemon_thread
from hermes.ops import AttemptClosed

Answer = TypeVar("Answer")


class Spent(Struct, frozen=True):
    """A sum of attempts. Attempts without a price or a count add nothing to it and are counted apart."""

    usd: float = 0.0
    tokens: int = 0
    seconds: float = 0.0
    unpriced: int = 0

    def plus(self, closing: AttemptClosed) -> "Spent":
        """The sum with one more attempt."""
        usage = closing.usage
        priced = closing.cost_usd is not None
        return Spent(
            usd=self.usd + (closing.cost_usd or 0.0),
            tokens=self.tokens + (usage.prompt_tokens or 0) + (usage.output_tokens or 0),
            seconds=self.seconds + closing.latency_ms / 1000,
            unpriced=self.unpriced + (not priced and usage.output_tokens is not None),
        )


class Cap(Struct, frozen=True, kw_only=True):
    """The most that may be spent; None is no cap."""

    usd: float | None = None
    tokens: int | None = None
    seconds: float | None = None

    def __bool__(self) -> bool:
        return any(limit is not None for limit in (self.usd, self.tokens, self.seconds))

    def reached(self, spent: Spent) -> str | None:
        """Which cap is reached, in words; None when there is room."""
        if self.usd is not None and spent.usd >= self.usd:
            return f"${spent.usd:.4f} of ${self.usd:g}"
        if self.tokens is not None and spent.tokens >= self.tokens:
            return f"{spent.tokens} of {self.tokens} tokens"
        if self.seconds is not None and spent.seconds >= self.seconds:
            return f"{spent.seconds:.0f} of {self.seconds:g} seconds"
        return None


class Caps(Struct, frozen=True, kw_only=True):
    """The caps of one agent."""

    turn: Cap = Cap()
    session: Cap = Cap()
    day: Cap = Cap()

    def __bool__(self) -> bool:
        return bool(self.turn or self.session or self.day)


class Ledger(Protocol):
    """Where sums over the ledger come from."""

    async def spent(self, *, since: float = 0.0, session_id: str | None = None) -> Spent:
        """Over attempts since a time; of one session with its children, or of all."""
        ...


class _Readable(Protocol):
    def read(self, work: Callable[[sqlite3.Connection], Answer]) -> Answer: ...


_SUMS = (
    "SELECT coalesce(sum(cost_usd), 0), coalesce(sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)"
    " + coalesce(cache_read_tokens, 0) + coalesce(cache_write_tokens, 0)), 0), coalesce(sum(latency_ms), 0) / 1000.0,"
    " count(*) FILTER (WHERE cost_usd IS NULL AND output_tokens IS NOT NULL) FROM attempts WHERE started_at >= ?"
)
_OF_SESSION = (
    " AND session_id IN (WITH RECURSIVE tree(id) AS (SELECT ? UNION"
    " SELECT s.id FROM sessions s JOIN tree ON s.parent_session_id = tree.id) SELECT id FROM tree)"
)


class SqliteLedger:
    """`Ledger` over the state file."""

    def __init__(self, store: _Readable) -> None:
        self._store = store

    async def spent(self, *, since: float = 0.0, session_id: str | None = None) -> Spent:
        sql, values = (_SUMS, (since,)) if session_id is None else (_SUMS + _OF_SESSION, (since, session_id))

        def work(conn: sqlite3.Connection) -> tuple[Any, ...]:
            row: tuple[Any, ...] = conn.execute(sql, values).fetchone()
            return row

        return Spent(*await in_daemon_thread(lambda: self._store.read(work), "hermes-ledger"))


class SpendGuard:
    """Refuses the next call once a cap is reached. One guard per agent; children are handed its `turn`."""

    def __init__(self, caps: Caps, ledger: Ledger | None, now: Callable[[], float] = time.time) -> None:
        self._caps = caps
        self._ledger = ledger
        self._now = now
        self.turn = Spent()

    def new_turn(self) -> None:
        """Forget what the last turn cost."""
        self.turn = Spent()

    def add(self, closing: AttemptClosed) -> None:
        """Count one attempt, also one that failed."""
        self.turn = self.turn.plus(closing)

    async def check(self, session_id: str | None) -> None:
        """Raise `BudgetExceeded` when there is no room for another call."""
        if not self._caps:
            return
        self._refuse("turn", self._caps.turn.reached(self.turn))
        if self._ledger is None:
            return
        if self._caps.session and session_id is not None:
            self._refuse("session", self._caps.session.reached(await self._ledger.spent(session_id=session_id)))
        if self._caps.day:
            self._refuse("day", self._caps.day.reached(await self._ledger.spent(since=_midnight(self._now()))))

    def _refuse(self, what: str, reached: str | None) -> None:
        if reached is not None:
            raise BudgetExceeded(
                f"the cap of this {what} is reached: {reached} are spent. "
                f"Raise spending.{what}_* in config.yaml to go on (hermes usage shows what was spent)"
            )


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
