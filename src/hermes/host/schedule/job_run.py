"""One run of a job: its script, its session, what came of it, and the row that says so."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace as with_fields
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from hermes.config import paths
from hermes.config.load import bound_settings
from hermes.config.sections.agent import Section as Agent
from hermes.config.sections.approvals import Section as Approvals
from hermes.config.sections.cron import Section
from hermes.config.sections.spending import Section as Spending
from hermes.config.settings import Settings
from hermes.config.values import plain
from hermes.errors import HermesError, UserError
from hermes.host.agent_settings import AgentSettings
from hermes.host.attached_skills import attached_skills
from hermes.host.events import LiveEvent
from hermes.host.hosted_session import HostedSession, SessionStart
from hermes.host.schedule.job_program import run_script
from hermes.host.schedule.job_text import (
    GO_ON,
    JobScriptOutput,
    delivered_text,
    failed_text,
    is_silent,
    output_page,
    prompt_of,
    response_in,
)
from hermes.host.turn_verdict import TurnVerdict, verdict_of, why_for
from hermes.runtime.setup.process import shared
from hermes.schedule.decide import after_run, month_start
from hermes.schedule.job_order import script_file
from hermes.schedule.ledger import ClaimedMoment, MomentResult, ScheduleLedger
from hermes.seams import Clock
from hermes.state.schedule_rows import Delivery, Job
from hermes.state.titles import MAX_TITLE_CHARS
from hermes.types import TurnStarted, text_of

if TYPE_CHECKING:
    from hermes.host.host import Host

NEVER = ("cronjob", "messaging", "clarify", "memory")  # toolsets that make no sense with nobody there
LOST_SCRIPT = "the scheduler was killed while the script of this job ran; whether it did its work is not known"
log = logging.getLogger(__name__)


class RunTakenOver(Exception):
    """Another scheduler goes on with this run."""


class RunAnswer(Struct, frozen=True, kw_only=True):
    """What a run came to, before it is written down."""

    answer: str = ""
    error: str = ""
    prompt: str = ""
    is_quiet: bool = False  # there is nothing to tell
    session_id: str = ""
    cost_usd: float | None = None


class JobRunner:
    """Runs claimed moments of one home in the sessions of a host."""

    def __init__(self, host: "Host", settings: Settings, ledger: ScheduleLedger, clock: Clock) -> None:
        self._host = host
        self._settings = settings
        self._section = settings.of(Section)
        self._ledger = ledger
        self._clock = clock

    async def run(self, claimed: ClaimedMoment) -> bool:
        """Run a moment to its end; whether its outcome was written here. One that is cancelled is taken up again."""
        try:
            came = await self._come_to(claimed)
        except RunTakenOver:
            log.warning("job %s: another scheduler has taken this run over", claimed.job.id)
            return False
        except HermesError as error:
            came = RunAnswer(error=str(error), prompt=claimed.job.prompt)
        except Exception as error:  # the border: a fault in one run must not end the ticker
            log.exception("job %s failed inside Hermes", claimed.job.id)
            came = RunAnswer(error=f"the run failed inside Hermes ({type(error).__name__}: {error})")
        is_ours: bool = await self._in_thread(self._write_down, claimed, came)
        return is_ours

    async def _come_to(self, claimed: ClaimedMoment) -> RunAnswer:
        job, moment = claimed.job, claimed.moment
        if moment.phase == "script":
            return RunAnswer(error=LOST_SCRIPT, prompt=job.prompt)
        if moment.phase == "agent":
            return await self._go_on(claimed)
        if job.workdir and not await self._in_thread(Path(job.workdir).is_dir):
            raise UserError(f"the workdir {job.workdir!r} of this job is gone")
        script = None
        if job.script:
            file = script_file(self._settings.home, job.script)
            claimed = await self._reach(claimed, "script")
            script = await self._run_script(job, file, claimed)
            if job.no_agent:
                said = script.stdout.strip()
                return RunAnswer(answer=said, error=script.trouble, is_quiet=not said, prompt=f"(script {job.script})")
            if not script.wakes_agent:
                return RunAnswer(answer="(the script has nothing for the model)", is_quiet=True, prompt=job.prompt)
        prompt = prompt_of(job, script, await self._in_thread(self._contexts, job))
        # In UTC: an hour that a clock shows twice has moments with one name.
        stamp = datetime.fromtimestamp(moment.due_at, UTC).strftime("%Y%m%d_%H%M%S")
        by_hand = f"_{moment.id}" if moment.kind == "manual" else ""
        return await self._ask(claimed, f"cron_{job.id}_{stamp}{by_hand}", prompt)

    async def _run_script(self, job: Job, file: Path, claimed: ClaimedMoment) -> JobScriptOutput:
        environ = self._settings.environ
        facts = {"HERMES_CRON_SESSION": "1", "HERMES_CRON_JOB": job.id, "HERMES_HOME": str(self._settings.home)}
        facts["HERMES_CRON_DUE_AT"] = f"{claimed.moment.due_at:.0f}"
        cwd = job.workdir or str(self._settings.home)
        return await run_script(file, cwd, environ, facts, self._section.script_timeout_seconds)

    # -- the agent -----------------------------------------------------------------------------------------------------

    async def _go_on(self, claimed: ClaimedMoment) -> RunAnswer:
        """Take up a run whose scheduler is gone, from what its session has last stored."""
        session_id, job = claimed.moment.session_id, claimed.job
        record = await shared.store(self._settings).load(session_id)
        while record is not None and record.continued_by and record.continued_by != session_id:
            session_id = record.continued_by
            record = await shared.store(self._settings).load(session_id)
        if record is None or not record.messages:
            if job.script:
                return RunAnswer(error=LOST_SCRIPT, prompt=job.prompt)
            return await self._ask(
                claimed, session_id, prompt_of(job, None, await self._in_thread(self._contexts, job))
            )
        last = record.messages[-1]
        if last.role == "assistant" and not last.tool_calls and (said := text_of(last.content).strip()):
            cost = await self._in_thread(self._cost, claimed.moment.session_id, session_id)
            return RunAnswer(
                answer=said, prompt=job.prompt, is_quiet=is_silent(said), session_id=session_id, cost_usd=cost
            )
        return await self._ask(claimed, session_id, GO_ON)

    async def _ask(self, claimed: ClaimedMoment, session_id: str, prompt: str) -> RunAnswer:
        job = claimed.job
        settings = await self._in_thread(self._settings_of, job)
        skills, settings = await self._in_thread(attached_skills, job.skills, "cron", settings, log.info)
        start = SessionStart(
            settings=settings,
            asked=AgentSettings(source="cron", quiet=True, ignore_rules=not job.workdir),
            skills=skills,
            folder=job.workdir or settings.environ.get("HOME", "") or str(settings.home),
            can_ask=False,
            has_titles=False,
        )
        claimed = await self._reach(claimed, "agent", session_id)
        with bound_settings(settings):
            session = self._host.for_question(start, session_id)
            told = skills.text(session_id) if skills is not None and prompt is not GO_ON else None
            name_it = partial(self._in_thread, self._name, session_id, job)
            ear = _Pulse(session, self._section.inactivity_seconds, name_it)
            try:
                result = await ear.ask(prompt, told)
            finally:
                with suppress(TimeoutError):
                    await session.close("cron_complete")
        return await self._answered(job, claimed, session, prompt, {**result, "was_idle": ear.was_idle})

    async def _answered(
        self, job: Job, claimed: ClaimedMoment, session: HostedSession, prompt: str, result: dict[str, Any]
    ) -> RunAnswer:
        verdict, said = verdict_of(result), str(result.get("final_response") or "").strip()
        error = "" if verdict is TurnVerdict.ANSWERED else why_for(verdict, result) or "the run came to no answer"
        if verdict is TurnVerdict.IN_USE:
            raise RunTakenOver
        if result["was_idle"]:
            error = f"nothing was heard of the run for {self._section.inactivity_seconds:g} s, and it was stopped"
        shown_prompt = job.prompt if prompt is GO_ON else prompt
        cost = await self._in_thread(self._cost, claimed.moment.session_id, session.session_id)
        return RunAnswer(
            answer=said,
            error=error,
            prompt=shown_prompt,
            is_quiet=is_silent(said),
            session_id=session.session_id,
            cost_usd=cost,
        )

    def _settings_of(self, job: Job) -> Settings:
        """The settings of a run: the job's own wishes, what nobody-there forbids, and its budget."""
        settings, flags = self._settings, dict(self._settings.flags)
        off = [*settings.of(Agent).disabled_toolsets, *NEVER]
        flags |= {"agent.disabled_toolsets": list(dict.fromkeys(off))}
        flags |= {"memory.memory_enabled": False, "memory.user_profile_enabled": False, "memory.provider": ""}
        if job.enabled_toolsets:
            flags["toolsets"] = list(job.enabled_toolsets)
        named = {"model.default": job.model, "model.provider": job.provider, "model.base_url": job.base_url}
        flags |= {name: value for name, value in named.items() if value}
        if job.allow:
            rules = [plain(rule) for rule in settings.of(Approvals).rules]
            granted = [{"action": "allow", "command": each, "name": f"granted to job {job.id}"} for each in job.allow]
            flags["approvals.rules"] = [*rules, *granted]
        if (cap := self._cap(job)) is not None:
            known = settings.of(Spending).session_usd
            flags["spending.session_usd"] = cap if known is None else min(cap, known)
        environ = {**settings.environ, "HERMES_CRON_SESSION": "1"}
        return with_fields(settings, flags=flags, environ=environ)

    def _cap(self, job: Job) -> float | None:
        caps = [job.run_usd] if job.run_usd is not None else []
        if job.month_usd is not None:
            since = month_start(self._clock.now(), self._ledger.zone_of(job))
            spent = self._ledger.rows.read(lambda tx: tx.cost_since(job.id, since))
            caps.append(max(0.0, job.month_usd - spent))
        return min(caps, default=None)

    def _name(self, session_id: str, job: Job) -> None:
        """Call the session like its job in lists, where its first words would be those that all jobs begin with."""
        try:
            self._host.db(self._settings).set_auto_title_if_empty(session_id, job.name[:MAX_TITLE_CHARS])
        except (HermesError, ValueError) as error:
            log.warning("the session %s of the job %r has no title: %s", session_id, job.name, error)

    def _cost(self, *session_ids: str) -> float | None:
        rows = [row for each in dict.fromkeys(session_ids) for row in self._host.db(self._settings).list_attempts(each)]
        known = [row["cost_usd"] for row in rows if row["cost_usd"] is not None]
        return sum(known) if known else None

    # -- what is written down ------------------------------------------------------------------------------------------

    def _write_down(self, claimed: ClaimedMoment, came: RunAnswer) -> bool:
        redact = self._redact
        came = replace(came, answer=redact(came.answer), error=redact(came.error))
        try:
            output = self._keep_page(claimed, came)
        except (OSError, UserError) as error:
            log.warning("the output of job %s was not kept: %s", claimed.job.id, error)
            output = ""
        outcome = "error" if came.error else "silent" if came.is_quiet else "ok"
        result = MomentResult(
            outcome=outcome, error=came.error, output=output, session_id=came.session_id, cost_usd=came.cost_usd
        )
        now = self._clock.now()
        is_ours = self._ledger.finish(claimed, result, now, lambda job: self._concluded(job, came, outcome, now))
        if not is_ours:
            log.warning("job %s: another scheduler has taken this run over; its outcome is not written", claimed.job.id)
        return is_ours

    def _redact(self, text: str) -> str:
        from hermes.tools.environments.command_env import redactor_of  # beside the run itself, this costs nothing

        return redactor_of(self._settings).redact(text)

    def _concluded(self, job: Job, came: RunAnswer, outcome: str, now: float) -> tuple[Job, Sequence[Delivery]]:
        """What the job knows of its run, and what is to be delivered. Runs inside the transaction."""
        failed, pauses = outcome == "error", ""
        ran = replace(
            job,
            last_run_at=now,
            last_status="error" if failed else "ok",
            last_error=came.error,
            last_cost_usd=came.cost_usd,
            failures=job.failures + 1 if failed else 0,
        )
        most = self._section.pause_after_failures
        if failed and most and ran.failures >= most and ran.state == "scheduled":
            why = f"it failed {ran.failures} times in a row"
            pauses = f"The job was paused, because {why}. Go on with: hermes cron resume {job.id}"
            ran = replace(ran, state="paused", paused_at=now, paused_reason=why)
        else:
            ran = after_run(ran, self._ledger.zone_of(ran))
        if job.deliver == "local" or outcome == "silent":
            return ran, ()
        text = (
            failed_text(job, came.error, pauses)
            if failed
            else delivered_text(job, came.answer, wraps=self._section.wrap_response)
        )
        return ran, (Delivery(job_id=job.id, target=job.deliver, origin=job.origin, text=text, at=now),)

    def _keep_page(self, claimed: ClaimedMoment, came: RunAnswer) -> str:
        job, moment = claimed.job, claimed.moment
        zone = self._ledger.zone_of(job)
        folder = paths.made(output_folder(self._settings.home, job.id))
        name = datetime.fromtimestamp(moment.due_at, zone).strftime("%Y-%m-%d_%H-%M-%S")
        file = folder / f"{name}.md"
        if moment.tries <= 1 and file.exists():  # of another moment that the clock shows by the same name
            file = folder / f"{name}_{moment.id}.md"
        paths.write_private(file, output_page(job, moment, self._redact(came.prompt), came.answer, came.error, zone))
        for old in sorted(folder.glob("*.md"), reverse=True)[self._section.output_retention :]:
            os.unlink(old)  # noqa: PTH108 - as Path.unlink
        return str(file)

    def _contexts(self, job: Job) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for job_id in job.context_from:
            pages = sorted(output_folder(self._settings.home, job_id).glob("*.md"), reverse=True)
            answers = (response_in(page.read_text(encoding="utf-8", errors="replace")) for page in pages)
            if answer := next((answer for answer in answers if answer), ""):
                found.append((job_id, answer))
        return found

    async def _reach(self, claimed: ClaimedMoment, phase: str, session_id: str = "") -> ClaimedMoment:
        reached: ClaimedMoment | None = await self._in_thread(self._ledger.reach, claimed, phase, session_id)
        if reached is None:
            raise RunTakenOver
        return reached

    async def _in_thread(self, work: Any, *args: Any) -> Any:
        return await shared.pool.run(work, *args)


def output_folder(home: Path, job_id: str) -> Path:
    """Where the pages of a job are kept."""
    return home / "cron" / "output" / job_id


class _Pulse:
    """`SessionListener` that tells when a run has begun, and stops one of which nothing is heard any more."""

    can_answer = False

    def __init__(self, session: HostedSession, limit_s: float, on_begun: Callable[[], Awaitable[None]]) -> None:
        self.was_idle = False
        self._session, self._limit_s, self._on_begun = session, limit_s, on_begun
        self._heard, self._begun = asyncio.Event(), asyncio.Event()
        session.listen(self)

    def emit(self, event: LiveEvent) -> None:
        self._heard.set()
        if isinstance(event, TurnStarted):
            self._begun.set()

    def offer(self, _text: str) -> bool:
        return False

    async def ask(self, prompt: str, told: str | None) -> dict[str, Any]:
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(self._watch(), name="inactivity of a job")
            beginning = group.create_task(self._tell_begun(), name="beginning of a job")
            result = await self._session.ask(prompt, told)
            watch.cancel()
            if not self._begun.is_set():
                beginning.cancel()
        return result

    async def _tell_begun(self) -> None:
        await self._begun.wait()  # only then is there a session
        await self._on_begun()

    async def _watch(self) -> None:
        while self._limit_s:
            self._heard.clear()
            try:
                async with asyncio.timeout(self._limit_s):
                    await self._heard.wait()
            except TimeoutError:
                self.was_idle = True
                self._session.interrupt()
                return
