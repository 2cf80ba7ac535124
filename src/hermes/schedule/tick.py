"""One look at the clock: who ticks, which runs are to be taken over, which moments are due. Blocking, and short."""

from hermes.schedule.ledger import ClaimedMoment, ScheduleLedger, new_fence
from hermes.state.schedule_rows import DueMoment

PORTION = 50  # moments that are decided upon in one transaction
RENEW_S = 10.0
FOLD_S = 3_600.0
DAY_S = 86_400.0


class TickState:
    """What a scheduler remembers between two looks. Whoever dies in between leaves nothing but its rows."""

    def __init__(self, ledger: ScheduleLedger, history_days: float) -> None:
        self.ledger = ledger
        self.is_leader = False
        self.running: dict[int, DueMoment] = {}  # what runs here, by its row
        self._fence = new_fence()
        self._history_days = history_days
        self._renewed_at = self._folded_at = self._seen_at = float("-inf")

    def tick(self, now: float, room: int = PORTION) -> list[ClaimedMoment]:
        """What is to be run now, at most `room` moments. Others of this process may be under way (`running`)."""
        found: list[ClaimedMoment] = []
        if not self._is_fresh(now):
            found = self._renew(now)
        self._seen_at = now
        limit = min(room - len(found), PORTION)
        if self.is_leader and limit > 0 and (start := self.ledger.next_start()) is not None and start <= now:
            found += self.ledger.claim_due(now, limit)
        for claimed in found:
            self.running[claimed.moment.id] = claimed.moment
        return found

    def ended(self, moment_id: int) -> None:
        """A run of this process is over, one way or the other."""
        self.running.pop(moment_id, None)

    def leave(self, now: float) -> None:
        """Let others tick."""
        if self.is_leader:
            self.is_leader = False
            self._renewed_at = float("-inf")
            self.ledger.release_lease(self._fence, now)

    def lost(self, now: float) -> list[int]:
        """Say that the runs of this process go on; the rows of those that others have taken over."""
        return self.ledger.renew(list(self.running.values()), now)

    def _is_fresh(self, now: float) -> bool:
        """Whether nothing is to be renewed; a clock that has jumped is a reason to look at everything."""
        return self.is_leader and 0 <= now - self._renewed_at < RENEW_S and now >= self._seen_at

    def _renew(self, now: float) -> list[ClaimedMoment]:
        if not self.is_leader and self.ledger.ticker(now) is not None:
            return []  # others tick, and to know that needs no write
        self.is_leader, back_s = self.ledger.take_lease(self._fence, now)
        if not self.is_leader:
            return []
        self._renewed_at = now
        if back_s:
            self.ledger.clock_went_back(now)
            self._folded_at = min(self._folded_at, now)
        if now - self._folded_at >= FOLD_S:
            self._folded_at = now
            self.ledger.fold(now - self._history_days * DAY_S)
        return self.ledger.adopt_lost(now, {moment.fence for moment in self.running.values()})
