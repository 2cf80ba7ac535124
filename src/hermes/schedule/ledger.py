"""The account of due moments: each one has one row, whoever asks, crashes or comes second.

Every call is one transaction. A moment is planned, then claimed with a fence that only its runner knows, then done; or
it is passed over, with the reason. Whoever ends a moment has to know its fence, so one that was taken over in the
meantime can neither end it nor tell of it.
"""

import logging
import secrets
from collections.abc import Callable, Collection, Sequence
from datetime import tzinfo

from msgspec import Struct
from msgspec.structs import replace

from hermes.schedule.decide import (
    BUDGET,
    MISSED,
    MomentFacts,
    MomentStep,
    Passed,
    decide,
    first_plan,
    horizon,
    month_start,
    settled,
    start_of,
)
from hermes.schedule.due_moments import due_between, next_due
from hermes.schedule.grammar import shown
from hermes.state import owner as owners
from hermes.state.schedule_rows import Delivery, DueMoment, Job, ScheduleRows, ScheduleTx, TickerLease

log = logging.getLogger(__name__)
LEASE_S = 30.0  # a ticker or run that was not heard of for so long counts as gone
BACK_S = 2.0  # a clock that stands further behind than it was seen was put back
FOLDED_AT_ONCE = 500

ZoneOf = Callable[[Job], tzinfo]
IsAlive = Callable[[str], bool]


class ClaimedMoment(Struct, frozen=True):
    """A moment that is to be run by whoever holds this, and the job as it was then."""

    job: Job
    moment: DueMoment


class MomentResult(Struct, frozen=True, kw_only=True):
    """How a run ended."""

    outcome: str  # ok, silent, error
    error: str = ""
    output: str = ""
    session_id: str = ""
    cost_usd: float | None = None


class ScheduleLedger:
    """The moments of a store. `owner` is this process, `zone_of` the time zone of a job."""

    def __init__(
        self, rows: ScheduleRows, zone_of: ZoneOf, owner: str = "", is_alive: IsAlive = owners.may_be_alive
    ) -> None:
        self.rows = rows
        self.zone_of = zone_of
        self.owner = owner or owners.this_process()
        self.is_alive = is_alive

    # -- who keeps the time ------------------------------------------------------------------------------------------

    def take_lease(self, fence: int, now: float) -> tuple[bool, float]:
        """Become or stay the one that ticks; whether it is so, and by how much the clock was put back since."""

        def work(tx: ScheduleTx) -> tuple[bool, float]:
            held = tx.lease()
            if held is not None and held.fence != fence and self._is_ticking(held, now):
                return False, 0.0
            since = held.since if held is not None and held.fence == fence else now
            seen = held.seen_at if held is not None else now
            back = seen - now if seen - now > BACK_S else 0.0
            tx.put_lease(
                TickerLease(
                    fence=fence, owner=self.owner, since=since, renewed_at=now, seen_at=now if back else max(seen, now)
                )
            )
            return True, back

        return self.rows.write(work)

    def release_lease(self, fence: int, now: float) -> None:
        """Let others tick; the time that was seen stays."""

        def work(tx: ScheduleTx) -> None:
            held = tx.lease()
            if held is not None and held.fence == fence:
                tx.put_lease(TickerLease(fence=0, owner="", since=now, renewed_at=0.0, seen_at=max(held.seen_at, now)))

        self.rows.write(work)

    def ticker(self, now: float) -> TickerLease | None:
        """Who ticks just now; None when nobody does."""
        held = self.rows.read(lambda tx: tx.lease())
        return held if held is not None and self._is_ticking(held, now) else None

    def _is_ticking(self, lease: TickerLease, now: float) -> bool:
        """Whether it was heard of lately. One that was stopped for a while, or whose clock was changed, may be taken
        for gone by mistake: two that tick do no harm, since each moment is claimed once."""
        return bool(lease.owner) and abs(now - lease.renewed_at) < LEASE_S and self.is_alive(lease.owner)

    def _is_run(self, moment: DueMoment, now: float) -> bool:
        """Whether its runner may be there. A process that is there counts, however long it was silent: a clock that was
        changed must not end what goes on."""
        if not moment.owner or not self.is_alive(moment.owner):
            return False
        return abs(now - moment.renewed_at) < LEASE_S or owners.is_alive_here(moment.owner)

    # -- moments -----------------------------------------------------------------------------------------------------

    def claim_due(self, now: float, limit: int) -> list[ClaimedMoment]:
        """Decide on the moments whose start has come, at most so many; those that are to be run now."""
        return self.rows.write(lambda tx: self._claim_due(tx, now, limit))

    def _claim_due(self, tx: ScheduleTx, now: float, limit: int) -> list[ClaimedMoment]:
        claimed: list[ClaimedMoment] = []
        for moment in tx.due(now, limit):
            job = tx.job(moment.job_id)
            if job is None:
                tx.drop_moment(moment.id)
                continue
            try:
                zone = self.zone_of(job)
                step = decide(job, moment, now, self._facts(tx, job, now, zone), zone)
                made = self._apply(tx, moment, step, now)
            except Exception as error:  # the border between jobs: one that nobody can decide on must not hold up others
                log.exception("job %s cannot be decided on", job.id)
                self._set_aside(tx, job, moment, error)
                continue
            if made is not None:
                claimed.append(ClaimedMoment(step.job, made))
        return claimed

    def _set_aside(self, tx: ScheduleTx, job: Job, moment: DueMoment, error: Exception) -> None:
        """A job that a person has to look at."""
        why = f"the schedule of this job cannot be worked out ({type(error).__name__}: {error}); change or remove it"
        tx.put_job(replace(job, state="error", last_status="error", last_error=why))
        tx.drop_moment(moment.id)
        if job.deliver != "local":
            text = f"Job {job.name!r} (job_id: {job.id}) no longer runs: {why}"
            tx.add_delivery(Delivery(job_id=job.id, target=job.deliver, origin=job.origin, text=text, at=moment.due_at))

    def _facts(self, tx: ScheduleTx, job: Job, now: float, zone: tzinfo) -> MomentFacts:
        spent = tx.cost_since(job.id, month_start(now, zone)) if job.month_usd is not None else 0.0
        return MomentFacts(len(tx.of_job(job.id, "claimed")), spent)

    def _apply(self, tx: ScheduleTx, moment: DueMoment, step: MomentStep, now: float) -> DueMoment | None:
        if step.defer_to is not None:
            tx.put_moment(replace(moment, start_at=step.defer_to))
            return None
        job = step.job
        tx.put_job(job)
        if step.run_at != moment.due_at:
            tx.drop_moment(moment.id)
        if step.passed is not None and pass_over(tx, job, step.passed, now):
            self._tell_passed(tx, job, step.passed, now)
        run = None
        if step.run_at is not None:
            run = replace(
                moment,
                state="claimed",
                due_at=step.run_at,
                last_at=step.run_at,
                fence=new_fence(),
                owner=self.owner,
                claimed_at=now,
                renewed_at=now,
                tries=1,
            )
            if step.run_at == moment.due_at:
                tx.put_moment(run)
            else:
                run = replace(run, id=tx.add_moment(run))
        if step.plan_at is not None:
            plan(tx, job, step.plan_at)
        return run

    def _tell_passed(self, tx: ScheduleTx, job: Job, passed: Passed, now: float) -> None:
        """Who waits for words of this job is told that there will be none, once for each stretch."""
        if job.deliver == "local" or passed.reason not in (MISSED, BUDGET):
            return
        zone, span = self.zone_of(job), passed.span
        when = f"at {shown(span.first, zone)}"
        if span.count > 1:
            when = f"{span.count} times, from {shown(span.first, zone)} to {shown(span.last, zone)}"
        text = f"Job {job.name!r} (job_id: {job.id}) did not run {when}: {passed.reason}."
        tx.add_delivery(Delivery(job_id=job.id, target=job.deliver, origin=job.origin, text=text, at=now))

    def adopt_lost(self, now: float, mine: Collection[int] = ()) -> list[ClaimedMoment]:
        """Take over the runs whose runner is gone; `mine` are the fences of those that run here."""

        def work(tx: ScheduleTx) -> list[ClaimedMoment]:
            found: list[ClaimedMoment] = []
            for moment in tx.in_state("claimed"):
                is_own = moment.owner == self.owner
                if moment.fence in mine or (not is_own and self._is_run(moment, now)):
                    continue
                job = tx.job(moment.job_id)
                taken = replace(
                    moment, fence=new_fence(), owner=self.owner, renewed_at=now, claimed_at=now, tries=moment.tries + 1
                )
                if job is None:  # it was removed, and its run is gone with its runner
                    tx.put_moment(replace(taken, state="done", outcome="error", error=REMOVED, finished_at=now))
                    continue
                tx.put_moment(taken)
                found.append(ClaimedMoment(job, taken))
            return found

        return self.rows.write(work)

    def renew(self, moments: Sequence[DueMoment], now: float) -> list[int]:
        """Say that these still run; the ids of those that others have taken over."""

        def work(tx: ScheduleTx) -> list[int]:
            lost: list[int] = []
            for moment in moments:
                found = tx.moment(moment.id)
                if found is None or found.state != "claimed" or found.fence != moment.fence:
                    lost.append(moment.id)
                else:
                    tx.put_moment(replace(found, renewed_at=now))
            return lost

        return self.rows.write(work) if moments else []

    def reach(self, claimed: ClaimedMoment, phase: str, session_id: str = "") -> ClaimedMoment | None:
        """Note how far a run has come before it goes there; None when it was taken over."""

        def work(tx: ScheduleTx) -> ClaimedMoment | None:
            found = tx.moment(claimed.moment.id)
            if found is None or found.state != "claimed" or found.fence != claimed.moment.fence:
                return None
            reached = "agent" if phase == "agent" else "script"
            moved = replace(found, phase=reached, session_id=session_id or found.session_id)
            tx.put_moment(moved)
            return ClaimedMoment(claimed.job, moved)

        return self.rows.write(work)

    def finish(
        self,
        claimed: ClaimedMoment,
        result: MomentResult,
        now: float,
        conclude: Callable[[Job], tuple[Job, Sequence[Delivery]]],
    ) -> bool:
        """End a run: its row, what its job knows of it, and what is to be delivered, all at once.

        False when it was taken over; then nothing is written. `conclude` is given the job as it is now.
        """

        def work(tx: ScheduleTx) -> bool:
            found = tx.moment(claimed.moment.id)
            if found is None or found.state != "claimed" or found.fence != claimed.moment.fence:
                return False
            ended = replace(
                found,
                state="done",
                outcome=result.outcome,
                error=result.error,
                output=result.output,
                session_id=result.session_id or found.session_id,
                cost_usd=result.cost_usd,
                finished_at=now,
                owner="",
                fence=0,
            )
            tx.put_moment(ended)
            job = tx.job(found.job_id)
            changed, deliveries = conclude(job if job is not None else claimed.job)
            if job is not None:
                tx.put_job(changed)
                if changed.state != "scheduled":
                    drop_plan(tx, job.id)
            for delivery in deliveries:
                tx.add_delivery(replace(delivery, moment_id=found.id))
            return True

        return self.rows.write(work)

    def next_start(self) -> float | None:
        """When the next planned moment starts."""
        return self.rows.read(lambda tx: tx.next_start())

    # -- time that goes back, and time that is long past ---------------------------------------------------------------

    def clock_went_back(self, now: float) -> int:
        """Un-pass what was passed over and has not come yet, and plan anew; how many jobs were changed.

        What ran in the time that is to come once more has its row, and is not run again.
        """
        jobs = self.rows.read(lambda tx: [job.id for job in tx.jobs() if job.mark > now])
        return sum(self._rewound(job_id, now) for job_id in jobs)

    def _rewound(self, job_id: str, now: float) -> bool:
        return self.rows.write(lambda tx: self._rewind(tx, job_id, now))

    def _rewind(self, tx: ScheduleTx, job_id: str, now: float) -> bool:
        job = tx.job(job_id)
        if job is None or job.mark <= now:
            return False
        zone = self.zone_of(job)
        rows = [row for row in tx.of_job(job_id, "claimed", "done", "skipped") if row.kind == "schedule"]
        for row in (row for row in rows if row.state == "skipped" and row.last_at > now):
            left = due_between(job.schedule, row.due_at - 0.5, now, zone) if row.due_at <= now else None
            if left is None:
                tx.drop_moment(row.id)
            else:
                tx.put_moment(replace(row, last_at=left.last, count=left.count))
        ran = {row.due_at for row in rows if row.state != "skipped" and row.due_at > now}
        moved = settled(replace(job, mark=now, ahead=tuple(sorted(ran | set(job.ahead)))), zone)
        drop_plan(tx, job_id)
        if job.state in ("scheduled", "completed") and (at := first_plan(moved, zone)) is not None:
            moved = replace(moved, state="scheduled")
            plan(tx, moved, at)
        tx.put_job(moved)
        return True

    def fold(self, before: float) -> int:
        """Turn rows older than this into counts, some at a time; how many rows were folded."""

        def work(tx: ScheduleTx) -> int:
            old = tx.ended_before(before, FOLDED_AT_ONCE)
            sums: dict[tuple[str, str, str], DueMoment] = {}
            for job_id in {row.job_id for row in old}:
                for row in tx.of_job(job_id, "folded"):
                    sums[job_id, row.outcome, row.reason] = row
            for row in old:
                key = (row.job_id, row.outcome, row.reason)
                sums[key] = _folded(sums.get(key), row)
                tx.drop_moment(row.id)
            for row in sums.values():
                if row.id:
                    tx.put_moment(row)
                else:
                    tx.add_moment(row)
            tx.drop_deliveries(before)
            return len(old)

        return self.rows.write(work)


REMOVED = "the job was removed, and the scheduler that ran it is gone"


def new_fence() -> int:
    """A number that nobody can guess, and that every database holds exactly."""
    return secrets.randbelow((1 << 52) - 1) + 1


def plan(tx: ScheduleTx, job: Job, due_at: float) -> None:
    """Write the row of the next moment."""
    tx.add_moment(
        DueMoment(job_id=job.id, due_at=due_at, last_at=due_at, start_at=start_of(job, due_at), state="planned")
    )


def drop_plan(tx: ScheduleTx, job_id: str) -> None:
    """Forget what was planned by the schedule; the job's mark says what still has no row."""
    for row in tx.of_job(job_id, "planned"):
        if row.kind == "schedule":
            tx.drop_moment(row.id)


def pass_over(tx: ScheduleTx, job: Job, passed: Passed, now: float) -> bool:
    """Write that these moments are passed over; one after the other for one reason, they are one row.

    Whether that row is new.
    """
    span, reason = passed.span, passed.reason
    before = tx.last_before(job.id, span.first)
    if before is not None and before.state == "skipped" and before.reason == reason:
        tx.put_moment(replace(before, last_at=span.last, count=before.count + span.count, finished_at=now))
        return False
    tx.add_moment(
        DueMoment(
            job_id=job.id,
            due_at=span.first,
            last_at=span.last,
            count=span.count,
            start_at=span.first,
            state="skipped",
            reason=reason,
            finished_at=now,
        )
    )
    return True


def pass_until(tx: ScheduleTx, job: Job, now: float, reason: str, zone: tzinfo) -> Job:
    """Pass over all that has no row yet and was due until now; the job with its mark there."""
    moved = settled(job, zone)
    while (span := due_between(moved.schedule, moved.mark, horizon(moved, now), zone)) is not None:
        pass_over(tx, moved, Passed(span, reason), now)
        moved = settled(replace(moved, mark=span.last), zone)
    return moved


def upcoming(job: Job, zone: tzinfo, now: float) -> float | None:
    """When a job is due next; None when it is not."""
    return next_due(job.schedule, max(job.mark, now), zone) if job.state == "scheduled" else None


def _folded(known: DueMoment | None, row: DueMoment) -> DueMoment:
    cost = None if row.cost_usd is None and (known is None or known.cost_usd is None) else 0.0
    if cost is not None:
        cost = (row.cost_usd or 0.0) + ((known.cost_usd or 0.0) if known is not None else 0.0)
    if known is None:
        return DueMoment(
            job_id=row.job_id,
            due_at=row.due_at,
            last_at=row.last_at,
            count=row.count,
            state="folded",
            outcome=row.outcome,
            reason=row.reason,
            cost_usd=cost,
        )
    first, last = min(known.due_at, row.due_at), max(known.last_at, row.last_at)
    return replace(known, due_at=first, last_at=last, count=known.count + row.count, cost_usd=cost)
