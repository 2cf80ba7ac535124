"""What becomes of a due moment: run, passed over with the reason, or left waiting. Pure."""

import hashlib
from datetime import datetime, tzinfo
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from hermes.schedule.due_moments import DueSpan, due_between, next_due
from hermes.state.schedule_rows import DueMoment, Job

GRACE_S = 120.0  # as long a moment counts as met: a machine may wake up, a scheduler may start
WAIT_S = 1.0  # when one that has to wait is looked at again

MISSED: Final = "missed: no scheduler ran"
OVERLAP: Final = "the run before it had not ended"
BUDGET: Final = "the budget of the month is used up"
EXPIRED: Final = "the job has expired"
PAUSED: Final = "paused"
CHANGED: Final = "the schedule was changed"


class MomentFacts(Struct, frozen=True):
    """What counts beside the job: how many of its runs are under way, and what they cost this month."""

    running: int = 0
    month_usd: float = 0.0


class Passed(Struct, frozen=True):
    """Moments that are passed over, one after the other."""

    span: DueSpan
    reason: str


class MomentStep(Struct, frozen=True, kw_only=True):
    """What is written for a moment that was planned, all at once. With `defer_to` nothing else is."""

    job: Job
    passed: Passed | None = None
    run_at: float | None = None  # the due moment that is run now
    plan_at: float | None = None  # the next one
    defer_to: float | None = None


def decide(job: Job, moment: DueMoment, now: float, facts: MomentFacts, zone: tzinfo) -> MomentStep:
    """What becomes of a planned moment whose start has come."""
    wait = MomentStep(job=job, defer_to=now + WAIT_S)
    if moment.kind == "manual":
        return wait if facts.running and job.overlap != "parallel" else MomentStep(job=job, run_at=moment.due_at)
    if job.expires_at is not None and moment.due_at > job.expires_at:
        return _ended(job, due_between(job.schedule, job.mark, horizon(job, now), zone), EXPIRED)
    if job.month_usd is not None and facts.month_usd >= job.month_usd:
        return _pass_all(job, now, BUDGET, zone)
    if facts.running and job.overlap != "parallel":
        if job.overlap == "queue" or job.catch_up == "all":
            return wait
        return _pass_all(job, now, OVERLAP, zone)
    return _run(job, moment, now, zone)


def first_plan(job: Job, zone: tzinfo) -> float | None:
    """The due moment after `job.mark` that is to be planned; None when the job has come to its end."""
    if job.repeat is not None and job.completed >= job.repeat:
        return None
    at = next_due(job.schedule, settled(job, zone).mark, zone)
    return at if at is None or job.expires_at is None or at <= job.expires_at else None


def settled(job: Job, zone: tzinfo) -> Job:
    """The job with its mark behind the moments that have come and ran before their time."""
    mark, ahead = job.mark, job.ahead
    while ahead and (at := next_due(job.schedule, mark, zone)) is not None and at >= ahead[0]:
        mark, ahead = (at if at == ahead[0] else mark), ahead[1:]
    return job if ahead == job.ahead else replace(job, mark=mark, ahead=ahead)


def horizon(job: Job, now: float) -> float:
    """Up to when moments can be looked at together: not beyond one that has its row already."""
    return min(now, job.ahead[0] - 0.5) if job.ahead else now


def start_of(job: Job, due_at: float) -> float:
    """When a moment starts: its jitter is the same whoever asks, and whenever."""
    if not job.jitter_s:
        return due_at
    digest = hashlib.sha256(f"{job.id}:{due_at}".encode()).digest()
    return due_at + int.from_bytes(digest[:4]) / 2**32 * job.jitter_s


def month_start(now: float, zone: tzinfo) -> float:
    """When this month began."""
    local = datetime.fromtimestamp(now, zone)
    return local.replace(day=1, hour=0, minute=0, second=0, microsecond=0, fold=0).timestamp()


def after_run(job: Job, zone: tzinfo) -> Job:
    """The job whose run has ended: complete, when nothing of it is to come."""
    return replace(job, state="completed") if job.state == "scheduled" and first_plan(job, zone) is None else job


def _run(job: Job, moment: DueMoment, now: float, zone: tzinfo) -> MomentStep:
    """Run a moment, and with all but `all` pass over those before it: many that were missed are one run at most."""
    if job.catch_up == "all":
        return _step(job, None, moment.due_at, zone)
    until = horizon(job, now if job.expires_at is None else min(now, job.expires_at))
    span = due_between(job.schedule, job.mark, until, zone) or DueSpan(moment.due_at, moment.due_at, 1)
    if job.catch_up == "skip" and now - start_of(job, span.last) > GRACE_S:
        return _step(job, Passed(span, MISSED), None, zone)
    if span.count == 1:
        return _step(job, None, span.last, zone)
    before = due_between(job.schedule, job.mark, span.last - 0.5, zone)
    return _step(job, Passed(before, MISSED) if before is not None else None, span.last, zone)


def _pass_all(job: Job, now: float, reason: str, zone: tzinfo) -> MomentStep:
    span = due_between(job.schedule, job.mark, horizon(job, now), zone)
    return _step(job, Passed(span, reason) if span is not None else None, None, zone)


def _ended(job: Job, span: DueSpan | None, reason: str) -> MomentStep:
    mark = span.last if span is not None else job.mark
    passed = Passed(span, reason) if span is not None else None
    return MomentStep(job=replace(job, mark=mark, state="completed"), passed=passed)


def _step(job: Job, passed: Passed | None, run_at: float | None, zone: tzinfo) -> MomentStep:
    mark = run_at if run_at is not None else passed.span.last if passed is not None else job.mark
    moved = settled(replace(job, mark=mark, completed=job.completed + (run_at is not None)), zone)
    plan_at = first_plan(moved, zone)
    if plan_at is None and run_at is None:
        moved = replace(moved, state="completed")
    return MomentStep(job=moved, passed=passed, run_at=run_at, plan_at=plan_at)
