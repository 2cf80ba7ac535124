"""The caps on what an agent may spend."""

import time
from collections.abc import Callable

from msgspec import Struct

from hermes.spend import NOTHING, Cap, SpendLimit, Spent


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
        self.has_caps = bool(caps.turn or caps.session or caps.day)

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


def _midnight(now: float) -> float:
    day = time.localtime(now)
    return time.mktime((day.tm_year, day.tm_mon, day.tm_mday, 0, 0, 0, 0, 0, -1))
