"""The jobs: made, changed, found, paused and removed; each change with its moments in one transaction."""

import secrets
from collections.abc import Callable
from typing import Any

from msgspec import UNSET, structs
from msgspec.structs import replace

from hermes.errors import UserError
from hermes.schedule.decide import CHANGED, PAUSED, first_plan
from hermes.schedule.due_moments import next_dues
from hermes.schedule.grammar import shown
from hermes.schedule.job_order import NAME_CHARS, JobChecks, JobOrder, job_fields, refuse_contradiction
from hermes.schedule.ledger import ScheduleLedger, drop_plan, pass_until, plan
from hermes.state.schedule_rows import DueMoment, Job, ScheduleTx

MIN_PREFIX = 3
PREVIEW_CHARS = 100


class AmbiguousJob(UserError):
    """Several jobs have this name; nothing was changed."""

    def __init__(self, name: str, matches: list[dict[str, Any]]) -> None:
        ids = ", ".join(str(one["id"]) for one in matches)
        super().__init__(f"{len(matches)} jobs are called {name!r}; say which one by its id: {ids}")
        self.matches = matches


class JobBook:
    """The jobs of a store, for the person at a command line and for the model's tool alike."""

    def __init__(self, ledger: ScheduleLedger, checks: JobChecks, now: Callable[[], float]) -> None:
        self.ledger = ledger
        self.checks = checks
        self.now = now

    # -- reading -----------------------------------------------------------------------------------------------------

    def jobs(self) -> list[Job]:
        return self.ledger.rows.read(lambda tx: tx.jobs())

    def find(self, name: str) -> Job:
        """The job of this id, of an id that begins so, or of this name; `UserError` when there is none or several."""
        wanted = name.strip()
        if wanted and (job := self.ledger.rows.read(lambda tx: tx.job(wanted))) is not None:
            return job
        jobs = self.jobs()
        for found in (
            [job for job in jobs if job.name == wanted],
            [job for job in jobs if job.name.lower() == wanted.lower()],
            [job for job in jobs if len(wanted) >= MIN_PREFIX and job.id.startswith(wanted)],
        ):
            if len(found) == 1:
                return found[0]
            if found:
                keys = ("id", "name", "schedule", "next_run_at")
                views = [self.view(job) | {"id": job.id} for job in found]
                raise AmbiguousJob(wanted, [{key: view[key] for key in keys} for view in views])
        raise UserError(f"there is no job {wanted!r}; see: hermes cron list")

    def history(self, job_id: str | None, limit: int) -> list[DueMoment]:
        """What came of due moments, the newest first."""
        return self.ledger.rows.read(lambda tx: tx.history(job_id, limit))

    def next_runs(self, job: Job, count: int) -> list[str]:
        """The next times of a job, in its own time zone."""
        if job.state == "paused":
            return []
        zone = self.ledger.zone_of(job)
        left = count if job.repeat is None else min(count, max(0, job.repeat - job.completed))
        dues = next_dues(job.schedule, max(job.mark, self.now() - 1), zone, left)
        return [shown(at, zone) or "" for at in dues if job.expires_at is None or at <= job.expires_at]

    def view(self, job: Job) -> dict[str, Any]:
        """A job as programs and models read it."""
        zone = self.ledger.zone_of(job)
        rows = self.ledger.rows.read(lambda tx: tx.of_job(job.id, "planned", "claimed"))
        planned = [row.start_at for row in rows if row.state == "planned"]
        preview = job.prompt if len(job.prompt) <= PREVIEW_CHARS else job.prompt[:PREVIEW_CHARS] + "..."
        facts: dict[str, Any] = {
            "job_id": job.id,
            "name": job.name,
            "skill": job.skills[0] if job.skills else None,
            "skills": list(job.skills),
            "prompt_preview": preview,
            "model": job.model or None,
            "provider": job.provider or None,
            "base_url": job.base_url or None,
            "schedule": job.schedule.display,
            "repeat": repeat_text(job),
            "deliver": job.deliver,
            "next_run_at": shown(min(planned, default=None), zone),
            "last_run_at": shown(job.last_run_at, zone),
            "last_status": job.last_status or None,
            "last_error": job.last_error or None,
            "last_cost_usd": job.last_cost_usd,
            "last_delivery_error": job.last_delivery_error or None,
            "enabled": job.state == "scheduled",
            "state": job.state,
            "running": sum(row.state == "claimed" for row in rows),
            "paused_at": shown(job.paused_at, zone),
            "paused_reason": job.paused_reason or None,
            "catch_up": job.catch_up,
            "overlap": job.overlap,
        }
        unusual = ("script", "no_agent", "workdir", "timezone", "jitter_s", "run_usd", "month_usd")
        facts |= {name: value for name in unusual if (value := getattr(job, name))}
        lists = ("enabled_toolsets", "context_from", "allow")
        facts |= {name: list(value) for name in lists if (value := getattr(job, name))}
        if job.expires_at is not None:
            facts["expires_at"] = shown(job.expires_at, zone)
        return facts

    # -- changes -----------------------------------------------------------------------------------------------------

    def draft(self, order: JobOrder) -> Job:
        """The job that `create` would make of an order; nothing is stored. `UserError` for what cannot be."""
        if not order.schedule:
            raise UserError("a job needs a schedule, such as 'every 2h' or '0 9 * * *'")
        now = self.now()
        fields = job_fields(order, self.checks, now, self._has)
        name = fields.pop("name", "") or " ".join(fields.get("prompt", "").split())[:NAME_CHARS].strip()
        name = name or " ".join(fields.get("skills", ())) or fields.get("script", "") or "job"
        schedule = fields["schedule"]
        if fields.get("deliver") == "origin" and not fields.get("origin", {}).get("session_id"):
            raise UserError("origin is the session that a job was made in, and this is none; use local or command:NAME")
        if schedule.kind == "once":
            fields["repeat"] = 1
        mark = min(now, schedule.at - 1) if schedule.kind == "once" else now
        job = Job(id=secrets.token_hex(6), name=name, created_at=now, mark=mark, **fields)
        refuse_contradiction(structs.asdict(job), mark, self.ledger.zone_of(job))
        return job

    def add(self, job: Job) -> Job:
        """Store a job with its first moment."""

        def work(tx: ScheduleTx) -> Job:
            tx.put_job(job)
            self._plan(tx, job)
            return job

        return self.ledger.rows.write(work)

    def create(self, order: JobOrder) -> Job:
        return self.add(self.draft(order))

    def redraft(self, job_id: str, order: JobOrder) -> Job:
        """The job as `update` would leave it; nothing is stored."""
        job = self.find(job_id)
        now = self.now()
        fields = job_fields(order, self.checks, now, self._has)
        if not fields:
            raise UserError("nothing is to be changed; name at least one thing")
        if (schedule := fields.get("schedule")) is not None:
            if schedule.kind == "once":
                fields["repeat"] = 1
            elif job.schedule.kind == "once" and "repeat" not in fields:
                fields["repeat"] = None
            fields["completed"] = 0 if job.state == "completed" else job.completed
            if schedule.kind == "once":
                fields["completed"] = 0
        changed = replace(job, **fields)
        if schedule is not None and job.state in ("completed", "error"):
            changed = replace(changed, state="scheduled")
        refuse_contradiction(structs.asdict(changed), now - 1, self.ledger.zone_of(changed))
        return changed

    def update(self, job_id: str, order: JobOrder) -> Job:
        """Change a job; another schedule counts from now on, and what was due before is passed over."""
        drafted = self.redraft(job_id, order)
        moves = any(value is not None for value in _moving(order))

        def change(tx: ScheduleTx, job: Job) -> Job:
            changed = replace(drafted, mark=job.mark)
            if moves:
                old = pass_until(tx, job, self.now(), CHANGED, self.ledger.zone_of(job))
                drop_plan(tx, job.id)
                once = changed.schedule.kind == "once" and order.schedule
                mark = min(self.now(), changed.schedule.at - 1) if once else max(self.now(), old.mark)
                changed = replace(changed, mark=mark)
                if changed.state == "scheduled":
                    self._plan(tx, changed)
            return changed

        return self._change(drafted.id, change)

    def pause(self, name: str, reason: str = "") -> Job:
        def change(tx: ScheduleTx, job: Job) -> Job:
            if job.state == "completed":
                raise UserError(f"job {job.name!r} has come to its end; nothing of it can be paused")
            if job.state == "paused":
                return job
            drop_plan(tx, job.id)
            return replace(job, state="paused", paused_at=self.now(), paused_reason=reason)

        return self._change(self.find(name).id, change)

    def resume(self, name: str) -> Job:
        """Go on; what was due meanwhile is passed over, and has its row."""

        def change(tx: ScheduleTx, job: Job) -> Job:
            if job.state != "paused":
                raise UserError(f"job {job.name!r} is not paused")
            zone = self.ledger.zone_of(job)
            moved = job if job.schedule.kind == "once" else pass_until(tx, job, self.now(), PAUSED, zone)
            moved = replace(moved, state="scheduled", paused_at=None, paused_reason="", failures=0)
            if not self._plan(tx, moved):
                moved = replace(moved, state="completed")
            return moved

        return self._change(self.find(name).id, change)

    def remove(self, name: str) -> Job:
        """Forget a job; what came of its moments stays in the history, and a run that is under way ends."""
        job = self.find(name)

        def work(tx: ScheduleTx) -> Job:
            for row in tx.of_job(job.id, "planned"):
                tx.drop_moment(row.id)
            tx.drop_job(job.id)
            return job

        return self.ledger.rows.write(work)

    def run_now(self, name: str) -> tuple[Job, int]:
        """Make a job due now, beside its schedule; the row of that moment."""
        job, now = self.find(name), self.now()

        def work(tx: ScheduleTx) -> int:
            for row in tx.of_job(job.id, "planned"):
                if row.kind == "manual":
                    return row.id
            return tx.add_moment(
                DueMoment(job_id=job.id, kind="manual", due_at=now, last_at=now, start_at=now, state="planned")
            )

        return job, self.ledger.rows.write(work)

    def _has(self, job_id: str) -> bool:
        return self.ledger.rows.read(lambda tx: tx.job(job_id)) is not None

    def _plan(self, tx: ScheduleTx, job: Job) -> bool:
        at = first_plan(job, self.ledger.zone_of(job))
        if at is not None:
            plan(tx, job, at)
        return at is not None

    def _change(self, job_id: str, change: Callable[[ScheduleTx, Job], Job]) -> Job:
        def work(tx: ScheduleTx) -> Job:
            job = tx.job(job_id)
            if job is None:
                raise UserError(f"the job {job_id!r} was removed meanwhile")
            changed = change(tx, job)
            tx.put_job(changed)
            return changed

        return self.ledger.rows.write(work)


def _moving(order: JobOrder) -> tuple[object, ...]:
    """What an order says that moves the moments of a job."""
    named = (order.schedule, order.timezone, order.expires, order.jitter, order.repeat)
    return tuple(None if value is UNSET else value for value in named)


def repeat_text(job: Job) -> str:
    """How often a job runs, in words."""
    if job.schedule.kind == "once":
        return "once"
    if job.repeat is None:
        return "forever"
    return f"{job.completed}/{job.repeat}" if job.completed else f"{job.repeat} times"
