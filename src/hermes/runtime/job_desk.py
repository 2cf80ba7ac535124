"""The work of the tool `cronjob`: from the model's arguments to the book of jobs, with a person's yes in between."""

import asyncio
import hashlib
import sys
from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, structs

from hermes.confinement.outside import outside
from hermes.context.memory.session_words import words_of_session
from hermes.context.origin import OutsideWords
from hermes.errors import ToolError, UserError
from hermes.runtime.parts import Joining
from hermes.runtime.setup.schedule_setup import job_book
from hermes.schedule.job_book import JobBook
from hermes.schedule.job_order import JobOrder
from hermes.seams import Action, Decision, SpawnSpec, ToolContext
from hermes.state.schedule_rows import DueMoment, Job
from hermes.tools.approval.effects_model import PLUGIN_RULE
from hermes.tools.builtin.cronjob import Cronjob

SHOWN_RUNS = 5
LOOK_S = 0.5
HERE = ("cli", "tui", "acp", "api_server", "")  # ways in that no message can be sent to by itself
_TEXTS = ("prompt", "schedule", "name", "deliver", "script", "workdir")
_LISTS = ("skills", "context_from", "enabled_toolsets")
_DONE = {"pause": "Paused", "resume": "Resumed", "update": "Changed"}


_ASKED = frozenset({*JobOrder.__struct_fields__} - {"origin"})  # what a yes is about


class JobDesk:
    """Takes calls of the tool for one agent."""

    def __init__(self, agent: Joining) -> None:
        self._agent = agent
        schedule = getattr(agent.services.store, "schedule", None)
        if schedule is None:
            raise ToolError("the store of this session keeps no schedule")
        self._book: JobBook = job_book(agent.settings, schedule, agent.services.clock.now)
        self._words = OutsideWords()

    async def call(self, asked: Cronjob, args: Mapping[str, object], ctx: ToolContext) -> dict[str, Any]:
        """Do what the model asks; a `UserError` is what it reads."""
        run = ctx.in_thread
        if asked.action == "list":
            views = await run(lambda: [self._book.view(job) for job in self._book.jobs()])
            return {"success": True, "count": len(views), "jobs": views}
        if asked.action == "create":
            return await self._create(self._order(asked, args, ctx), ctx)
        if not asked.job_id:
            raise UserError(f"{asked.action} needs a job_id; `list` tells them")
        job: Job = await run(self._book.find, asked.job_id)
        if asked.action == "pause":
            return await self._changed("pause", await run(self._book.pause, job.id, "paused by the agent"), ctx)
        order = self._order(asked, args, ctx) if asked.action == "update" else JobOrder()
        drafted: Job = await run(self._book.redraft, job.id, order) if asked.action == "update" else job
        await self._require_yes(asked.action, drafted, ctx)
        match asked.action:
            case "update":
                return await self._changed("update", await run(self._book.update, job.id, order), ctx)
            case "resume":
                return await self._changed("resume", await run(self._book.resume, job.id), ctx)
            case "remove":
                await run(self._book.remove, job.id)
                removed = {"id": job.id, "name": job.name, "schedule": job.schedule.display}
                return {"success": True, "message": f"Removed {job.name!r}.", "removed_job": removed}
            case _:
                return await self._run_now(job, ctx)

    async def _create(self, order: JobOrder, ctx: ToolContext) -> dict[str, Any]:
        job: Job = await ctx.in_thread(self._book.draft, order)
        await self._require_yes("create", job, ctx)
        await ctx.in_thread(self._book.add, job)
        view = await ctx.in_thread(self._book.view, job)
        keys = ("job_id", "name", "skill", "skills", "schedule", "repeat", "deliver", "next_run_at")
        kept = await ctx.in_thread(self._book.ledger.ticker, self._agent.services.clock.now())
        alive = "" if kept is not None else " No scheduler is alive; the user has to start one: hermes cron daemon."
        message = f"Job {job.name!r} is scheduled ({job.schedule.display}).{alive}"
        return {"success": True, **{key: view[key] for key in keys}, "job": view, "message": message}

    async def _changed(self, action: str, job: Job, ctx: ToolContext) -> dict[str, Any]:
        view = await ctx.in_thread(self._book.view, job)
        return {"success": True, "job": view, "message": f"{_DONE[action]} {job.name!r}."}

    def _order(self, asked: Cronjob, args: Mapping[str, object], ctx: ToolContext) -> JobOrder:
        """What the call says; what it leaves out stays as it is."""
        given: dict[str, Any] = {name: value for name in _TEXTS if (value := getattr(asked, name)) is not UNSET}
        given |= {name: tuple(value) for name in _LISTS if (value := getattr(asked, name)) is not UNSET}
        if asked.repeat is not UNSET:
            given["repeat"] = asked.repeat
        if "no_agent" in args:
            given["no_agent"] = asked.no_agent
        if asked.model is not UNSET:
            given |= {"model": asked.model.model, "provider": asked.model.provider or ""}
        session = self._agent.options.session
        if asked.action == "create":
            platform = session.platform or ""
            given["origin"] = {"session_id": ctx.session_id, "platform": platform, "chat_id": session.chat_id}
            given.setdefault("deliver", "local" if platform in HERE else "origin")
        return JobOrder(**given)

    async def _require_yes(self, action: str, job: Job, ctx: ToolContext) -> None:
        """Ask a person, with the next times; `UserError` for a no."""
        runs = await ctx.in_thread(self._book.next_runs, job, SHOWN_RUNS)
        why = f"{action} the scheduled job {job.name!r}, {job.schedule.display}, delivering to {job.deliver}"
        if action != "remove" and runs:
            why += f"; next runs: {', '.join(runs)}"
        if action in ("create", "update") and (source := await self._source(job, ctx)):
            why += f"; its words come from {source}, and not from you"
        text = f"cronjob {action} {job.schedule.display!r}\n{_shown(job)}"
        # A yes is for this very job: whatever is different about another one is another question.
        whole = {name: value for name, value in structs.asdict(job).items() if name in _ASKED}
        mark = hashlib.sha256(f"{action}{whole}".encode()).hexdigest()[:12]
        decision = await ctx.gate.decide(
            Action(
                kind="tool",
                tool="cronjob",
                text=text,
                route=ctx.route,
                session_id=ctx.session_id,
                task_id=ctx.task_id,
                details={"rule": f"{PLUGIN_RULE}cronjob:{mark}", "why": why, "persons_yes": True},
            ),
            ctx.scope,
        )
        if not decision.allowed:
            raise UserError(f"nothing was changed: {decision.reason or 'the user said no'}")

    async def _source(self, job: Job, ctx: ToolContext) -> str:
        """Where the words of a job come from, when they are not the person's."""
        store = self._agent.services.store
        record = await store.load(ctx.session_id)
        earlier = [await store.load(one) for one in (record.earlier if record else ())]
        heard = words_of_session([one for one in [*earlier, record] if one is not None], is_whole=None not in earlier)
        origin = await ctx.in_thread(self._words.origin, job.prompt, heard.outside, heard.own)
        return origin.source if origin is not None else ""

    async def _run_now(self, job: Job, ctx: ToolContext) -> dict[str, Any]:
        """Run a job and tell the outcome: the scheduler does, or one that is started for this."""
        _, moment_id = await ctx.in_thread(self._book.run_now, job.id)
        clock = self._agent.services.clock
        if await ctx.in_thread(self._book.ledger.ticker, clock.now()) is None:
            await self._tick(ctx)
        row = await ctx.in_thread(self._row, moment_id)
        while row is not None and row.state in ("planned", "claimed"):
            await asyncio.sleep(LOOK_S)
            row = await ctx.in_thread(self._row, moment_id)
        view = await ctx.in_thread(lambda: self._book.view(self._book.find(job.id)))
        if row is None:
            return {"success": False, "job": view, "error": "the run was taken back before it began"}
        facts = {"outcome": row.outcome, "session_id": row.session_id or None, "output": row.output or None}
        if row.outcome == "error":
            return {"success": False, "job": view, **facts, "error": row.error}
        return {"success": True, "job": view, **facts, "message": f"Ran {job.name!r}: {row.outcome}."}

    def _row(self, moment_id: int) -> DueMoment | None:
        return self._book.ledger.rows.read(lambda tx: tx.moment(moment_id))

    async def _tick(self, ctx: ToolContext) -> None:
        settings = self._agent.settings
        spec = SpawnSpec(
            argv=(sys.executable, "-m", "hermes", "cron", "tick", "--json"),
            cwd=str(settings.home),
            env={**dict(settings.environ), "HERMES_HOME": str(settings.home)},
            owner=ctx.session_id,
            confinement=outside("own scheduler"),
        )
        child = await self._agent.services.supervisor.spawn(Decision.own("the schedule"), spec)
        try:
            said = b"".join([chunk async for chunk in child.output()])
            if await child.wait():
                raise UserError(f"the job could not be run: {said.decode('utf-8', 'replace').strip()[-500:]}")
        finally:
            child.release()


def _shown(job: Job) -> str:
    """All that a run would do, in the words that a person is shown."""
    named = {
        "script": f"{job.script} (alone)" if job.no_agent else job.script,
        "skills": ", ".join(job.skills),
        "reads the answers of": ", ".join(job.context_from),
        "tools": ", ".join(job.enabled_toolsets),
        "folder": job.workdir,
        "model": " ".join(filter(None, (job.provider, job.model))),
        "may run unasked": ", ".join(job.allow),
    }
    return "\n".join([*filter(None, [job.prompt]), *(f"{name}: {value}" for name, value in named.items() if value)])
