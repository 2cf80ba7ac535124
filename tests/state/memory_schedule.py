"""A `ScheduleRows` in memory: the fake for tests. It passes the same contract suite."""

from collections.abc import Callable
from copy import copy
from threading import RLock
from typing import TypeVar, get_args

from msgspec.structs import replace

from hermes.state.schedule_rows import (
    Delivery,
    DeliveryState,
    DueMoment,
    Job,
    MomentState,
    ScheduleTx,
    TickerLease,
    by_moment,
)

Answer = TypeVar("Answer")


class MemoryScheduleRows:
    """Rows in dicts; a write that raises leaves them as they were."""

    def __init__(self) -> None:
        self._lock = RLock()  # guards the rows: each call is one transaction
        self._tx = MemoryScheduleTx()

    def read(self, work: Callable[[ScheduleTx], Answer]) -> Answer:
        with self._lock:
            return work(self._tx)

    def write(self, work: Callable[[ScheduleTx], Answer]) -> Answer:
        with self._lock:
            self._tx.undo.clear()
            try:
                return work(self._tx)
            except BaseException:
                for back in reversed(self._tx.undo):
                    back()
                raise


class MemoryScheduleTx:
    """`ScheduleTx` over dicts."""

    def __init__(self) -> None:
        self.undo: list[Callable[[], object]] = []
        self._jobs: dict[str, Job] = {}
        self._moments: dict[int, DueMoment] = {}
        self._of_job: dict[str, dict[int, None]] = {}
        self._in_state: dict[str, dict[int, None]] = {state: {} for state in get_args(MomentState)}
        self._planned = self._in_state["planned"]
        self._oldest = float("inf")  # no row that has ended is older
        self._deliveries: dict[int, Delivery] = {}
        self._lease: TickerLease | None = None
        self._newest = 0

    def job(self, job_id: str) -> Job | None:
        return self._jobs.get(job_id)

    def jobs(self) -> list[Job]:
        return sorted(self._jobs.values(), key=lambda job: (job.created_at, job.id))

    def put_job(self, job: Job) -> None:
        self._keep(self._jobs, job.id)
        self._jobs[job.id] = job

    def drop_job(self, job_id: str) -> None:
        self._keep(self._jobs, job_id)
        self._jobs.pop(job_id, None)

    def due(self, now: float, limit: int) -> list[DueMoment]:
        found = [self._moments[each] for each in self._planned if self._moments[each].start_at <= now]
        return sorted(found, key=lambda row: (row.start_at, row.id))[:limit]

    def next_start(self) -> float | None:
        return min((self._moments[each].start_at for each in self._planned), default=None)

    def moment(self, moment_id: int) -> DueMoment | None:
        return self._moments.get(moment_id)

    def of_job(self, job_id: str, *states: MomentState) -> list[DueMoment]:
        mine, wanted = self._of_job.get(job_id, {}), [self._in_state[state] for state in states]
        if sum(map(len, wanted)) < len(mine):
            found = [each for one in wanted for each in one if each in mine]
        else:
            found = [each for each in mine if self._moments[each].state in states]
        return by_moment([self._moments[each] for each in found])

    def last_before(self, job_id: str, due_at: float) -> DueMoment | None:
        rows = self.of_job(job_id, "planned", "claimed", "done", "skipped")
        found = [row for row in rows if row.kind == "schedule" and row.due_at < due_at]
        return found[-1] if found else None

    def in_state(self, state: MomentState) -> list[DueMoment]:
        return [self._moments[each] for each in sorted(self._in_state[state])]

    def history(self, job_id: str | None, limit: int) -> list[DueMoment]:
        rows = [row for row in self._moments.values() if row.state != "planned" and job_id in (None, row.job_id)]
        return sorted(rows, key=lambda row: (-row.last_at, -row.id))[:limit]

    def ended_before(self, at: float, limit: int) -> list[DueMoment]:
        if at <= self._oldest:
            return []
        rows = [row for row in self._moments.values() if row.state in ("done", "skipped") and row.last_at < at]
        return sorted(rows, key=lambda row: row.last_at)[:limit]

    def add_moment(self, moment: DueMoment) -> int:
        key = (moment.kind, moment.due_at)
        taken = (row for each in self._of_job.get(moment.job_id, ()) if (row := self._moments[each]).state != "folded")
        if moment.state != "folded" and any((row.kind, row.due_at) == key for row in taken):
            raise ValueError(f"job {moment.job_id!r} has a row for this moment already")
        self._newest += 1
        self._set(replace(moment, id=self._newest))
        return self._newest

    def put_moment(self, moment: DueMoment) -> None:
        if moment.id in self._moments:
            self._set(moment)

    def drop_moment(self, moment_id: int) -> None:
        if (row := self._moments.get(moment_id)) is not None:
            self.undo.append(lambda: self._set(row))
            self._unset(moment_id)

    def cost_since(self, job_id: str, at: float) -> float:
        return sum(row.cost_usd or 0.0 for row in self.of_job(job_id, "done") if row.due_at >= at)

    def delivery(self, delivery_id: int) -> Delivery | None:
        return self._deliveries.get(delivery_id)

    def deliveries(self, state: DeliveryState, now: float, limit: int) -> list[Delivery]:
        found = [row for row in self._deliveries.values() if row.state == state and row.next_try_at <= now]
        return sorted(found, key=lambda row: (row.next_try_at, row.id))[:limit]

    def add_delivery(self, delivery: Delivery) -> int:
        self._newest += 1
        self._keep(self._deliveries, self._newest)
        self._deliveries[self._newest] = replace(delivery, id=self._newest)
        return self._newest

    def put_delivery(self, delivery: Delivery) -> None:
        self._keep(self._deliveries, delivery.id)
        self._deliveries[delivery.id] = delivery

    def drop_deliveries(self, before: float) -> int:
        old = [row.id for row in self._deliveries.values() if row.state in ("sent", "failed") and row.at < before]
        for each in old:
            self._keep(self._deliveries, each)
            del self._deliveries[each]
        return len(old)

    def lease(self) -> TickerLease | None:
        return self._lease

    def put_lease(self, lease: TickerLease | None) -> None:
        before = copy(self._lease)
        self.undo.append(lambda: setattr(self, "_lease", before))
        self._lease = lease

    def _set(self, row: DueMoment) -> None:
        before = self._moments.get(row.id)
        self.undo.append(lambda: self._set(before) if before is not None else self._unset(row.id))
        self._moments[row.id] = row
        self._of_job.setdefault(row.job_id, {})[row.id] = None
        if before is not None:
            self._in_state[before.state].pop(row.id, None)
        self._in_state[row.state][row.id] = None
        if row.state in ("done", "skipped"):
            self._oldest = min(self._oldest, row.last_at)

    def _unset(self, moment_id: int) -> None:
        row = self._moments.pop(moment_id)
        self._of_job[row.job_id].pop(moment_id, None)
        self._in_state[row.state].pop(moment_id, None)

    def _keep(self, table: dict[Answer, Job] | dict[Answer, Delivery], key: Answer) -> None:
        """Remember a row as it is, for the case that the write fails."""
        rows: dict[Answer, Job | Delivery] = table  # type: ignore[assignment]  # either kind is put back where it was
        before = rows.get(key)
        if before is None:
            self.undo.append(lambda: rows.pop(key, None))
        else:
            self.undo.append(lambda: rows.update({key: before}))
