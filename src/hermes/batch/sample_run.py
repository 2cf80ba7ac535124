"""One sample: an agent with a session and a workspace of its own, and what is kept of its conversation."""

import asyncio
import hashlib
import random
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

from msgspec import Struct

from hermes import AIAgent
from hermes.batch.dataset import Sample
from hermes.batch.distributions import Distribution
from hermes.batch.run_spec import RunSpec
from hermes.config.load import bound_settings
from hermes.config.sections import terminal
from hermes.config.settings import Settings
from hermes.errors import UserError
from hermes.ops import CallRecord, SessionRecord
from hermes.seams import Sink
from hermes.state.batch_rows import BatchRun, SampleRow
from hermes.state.queries import SessionStore
from hermes.tools.calling.pool import DaemonPool
from hermes.typed import from_json
from hermes.types import JsonObject

Hold = Callable[[int, int, str], Any]


class SampleContext(Struct, kw_only=True):
    """What all samples of a run in this process share."""

    sample: Callable[[int], Sample]  # the one at that place of the dataset

    run: BatchRun
    spec: RunSpec
    settings: Settings
    store: SessionStore
    pool: DaemonPool
    distribution: Distribution
    known_tools: frozenset[str]
    toolsets: frozenset[str]  # those that have a tool here
    sink: Sink | None = None
    agents: dict[int, AIAgent]  # at work now, by sample
    workspaces: Path  # where samples that name no folder have theirs
    hold: Hold | None = None  # called before a session begins, and durable when it returns


class SampleEnd(Struct, frozen=True, kw_only=True):
    """A conversation that has come to its end, or was interrupted: what `sample_result` makes its result of."""

    sample: Sample
    row: SampleRow
    drawn: list[str]
    verdict: JsonObject
    workspace: Path | None


class SampleStart(Struct, frozen=True, kw_only=True):
    """A sample whose conversation can begin, or go on."""

    sample: Sample
    settings: Settings
    kept: SessionRecord | None  # what an earlier process left of it
    row: SampleRow
    workspace: Path | None


def start_sample(ctx: SampleContext, row: SampleRow) -> SampleStart:
    """Read, enter and make all that has to be there before the conversation begins; for a plain thread.

    A session that was cut off goes on from its last commit. Where a call's outcome is unknown and the workspace is one
    that the run itself made, the sample begins anew in a fresh one: so the call is neither repeated nor a fault of ours
    taught. Where the folder is the user's, the model is told, as in any session. What is not on this machine went with
    the process that had it: such a sample begins anew.
    """
    sample = ctx.sample(row.index)
    if sample.digest != row.digest:
        raise UserError(f"sample {row.index} has changed in the dataset since the run began to work")
    settings = sample_settings(ctx, sample)
    is_here = settings.of(terminal.Section).backend == "local"
    kept = load_session(ctx.store, row.session_id) if row.session_id and is_here else None
    if kept is not None and not sample.cwd and any(one.is_started for one in kept.open_calls):
        kept = None
    attempt, session_id = row.attempt, row.session_id
    if kept is None:
        attempt += 1
        session_id = ctx.run.session_of(sample.index, attempt)
        if attempt > 1 and ctx.hold is not None:  # a first one was entered when it was taken
            ctx.hold(sample.index, attempt, session_id)
    return SampleStart(
        sample=sample,
        settings=settings,
        kept=kept,
        row=SampleRow(index=sample.index, digest=row.digest, attempt=attempt, session_id=session_id),
        workspace=_workspace(ctx, sample, kept is None) if is_here else None,
    )


async def try_out(ctx: SampleContext) -> None:
    """`UserError` for a model or an option that no sample could be run with. Nobody is asked anything."""
    sample = Sample(index=0, prompt="")
    row = SampleRow(index=0, digest="", session_id=ctx.run.session_of(0, 0))
    start = SampleStart(sample=sample, settings=sample_settings(ctx, sample), kept=None, row=row, workspace=None)
    with bound_settings(start.settings):
        agent = _agent(ctx, start, sorted(ctx.toolsets & set(ctx.distribution.toolsets)))
        try:
            await agent.adescribe_prompt()
        finally:
            await agent.aclose()


async def run_sample(ctx: SampleContext, start: SampleStart) -> SampleEnd:
    """Bring the sample's conversation to its end, going on with what an earlier process left of it."""
    sample, drawn = start.sample, _drawn(ctx, start.sample)
    with bound_settings(start.settings):
        agent = _agent(ctx, start, drawn)
        ctx.agents[sample.index] = agent
        try:
            verdict = await _verdict(ctx, agent, sample, start.kept)
        finally:
            ctx.agents.pop(sample.index, None)
            await agent.aclose()
    return SampleEnd(sample=sample, row=start.row, drawn=drawn, verdict=verdict, workspace=start.workspace)


def drop_workspace(ctx: SampleContext, end: SampleEnd) -> None:
    """Remove the folder that the run made for the sample, unless it is to be kept; for a plain thread."""
    if end.workspace is not None and not end.sample.cwd and not ctx.spec.keeps_workspaces:
        try:
            end.workspace.rmdir()  # many a sample leaves nothing in it
        except OSError:
            shutil.rmtree(end.workspace, ignore_errors=True)


def stored_calls(store: SessionStore, session_id: str) -> list[CallRecord]:
    """What the requests of a session were made of, in order; for a plain thread."""
    rows = store.queries.records("model_calls", session_id, 0.0, -1)
    return [from_json(row["record"], CallRecord) for row in reversed(rows)]


def load_session(store: SessionStore, session_id: str) -> SessionRecord | None:
    """A session of the store, for a plain thread."""
    sync: Callable[[str], SessionRecord | None] | None = getattr(store, "load_sync", None)
    return sync(session_id) if sync is not None else asyncio.run(store.load(session_id))


def seed_of(spec: RunSpec, sample: Sample) -> int:
    """The sample's own seed: the same in every process and after every restart."""
    words = f"{spec.seed}\0{sample.index}\0{sample.digest}"
    return int.from_bytes(hashlib.sha256(words.encode()).digest()[:4], "big") >> 1


def _drawn(ctx: SampleContext, sample: Sample) -> list[str]:
    drawn = ctx.distribution.draw(random.Random(seed_of(ctx.spec, sample)))
    here = [name for name in drawn if name in ctx.toolsets]
    likely = sorted(ctx.distribution.toolsets, key=lambda name: -ctx.distribution.toolsets[name])
    return here or [name for name in likely if name in ctx.toolsets][:1]


def _workspace(ctx: SampleContext, sample: Sample, is_fresh: bool) -> Path:
    if sample.cwd:
        own = Path(ctx.spec.dataset).parent / Path(sample.cwd).expanduser()
        if not own.is_dir():
            raise UserError(f"there is no folder {sample.cwd!r}, which the sample names as its cwd")
        return own
    folder = ctx.workspaces / f"{sample.index:06d}"
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        if is_fresh:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(exist_ok=True)
    return folder


def sample_settings(ctx: SampleContext, sample: Sample) -> Settings:
    """The settings of the run, with the image of the sample."""
    backend = ctx.settings.of(terminal.Section).backend
    if not sample.image and backend == "local":
        return ctx.settings
    # Thrown away at the sample's end: a run of thousands would leave as many containers.
    flags: dict[str, Any] = {"terminal.container_persistent": False}
    if sample.image:
        backend = backend if backend in get_args(terminal.Container) else "docker"
        flags |= {"terminal.backend": backend, f"terminal.{backend}_image": sample.image}
    return ctx.settings.with_flags(flags)


def _agent(ctx: SampleContext, start: SampleStart, drawn: list[str]) -> AIAgent:
    spec, sample = ctx.spec, start.sample
    overrides: JsonObject = {}
    if spec.logprobs:
        overrides |= {"logprobs": True, "return_token_ids": True}
    if spec.sends_seed:
        overrides["seed"] = seed_of(spec, sample)
    reasoning: JsonObject | None = None
    if spec.reasoning_disabled:
        reasoning = {"enabled": False, "effort": "none"}
    elif spec.reasoning_effort:
        reasoning = {"enabled": True, "effort": spec.reasoning_effort}
    return AIAgent(
        model=spec.model,
        base_url=spec.base_url or None,
        provider=spec.provider or None,
        api_key=spec.api_key or None,
        max_tokens=spec.max_tokens,
        reasoning_config=reasoning,
        request_overrides=overrides or None,
        prefill_messages=spec.prefill_messages or None,
        providers_allowed=spec.providers_allowed or None,
        providers_ignored=spec.providers_ignored or None,
        providers_order=spec.providers_order or None,
        provider_sort=spec.provider_sort or None,
        enabled_toolsets=drawn,
        cwd=str(start.workspace or sample.cwd) or None,
        session_id=start.row.session_id,
        store=ctx.store,
        platform="batch",
        ephemeral_system_prompt=spec.ephemeral_system_prompt or None,
        skip_context_files=True,
        skip_memory=True,
        max_iterations=spec.max_turns,
        quiet_mode=True,
        sink=ctx.sink,
        records_calls=True,
        turn_timeout_s=spec.sample_seconds,
    )


async def _verdict(ctx: SampleContext, agent: AIAgent, sample: Sample, kept: SessionRecord | None) -> JsonObject:
    """How the conversation ended: it is run, goes on, or had its end before it could be noted."""
    if kept is None or not kept.messages:
        return _told(await agent.arun_conversation(sample.prompt), agent)
    tip = kept if kept.continued_by is None else await ctx.store.load(kept.continued_by)
    if tip is not None and (ended := await ctx.pool.run(_ending, ctx, tip)) is not None:
        return ended
    return _told(await agent.acontinue_turn(), agent)


def _ending(ctx: SampleContext, session: SessionRecord) -> JsonObject | None:
    """How a session ended that has its last word: killed after its last commit, before the sample's row knew of it."""
    last = session.messages[-1]
    if last.role != "assistant" or last.tool_calls or last.finish_reason == "length":
        return None
    answers = 0
    for message in session.messages:
        answers = 0 if message.role == "user" else answers + (message.role == "assistant")
    most, calls = ctx.spec.max_turns, stored_calls(ctx.store, session.session_id)
    is_summary, is_cut = answers > most, bool(calls) and calls[-1].partial
    reason = f"max_iterations_reached({most}/{most})" if is_summary else "text_response"
    completed = not is_summary and not is_cut
    return {"session_id": session.session_id, "completed": completed, "partial": is_cut, "exit_reason": reason}


def _told(result: Mapping[str, Any], agent: AIAgent) -> JsonObject:
    names = ("session_id", "completed", "partial", "interrupted", "failed", "error", "model")
    told = {name: result.get(name) for name in names}
    return {**told, "exit_reason": result.get("turn_exit_reason"), "system": agent.told_first[0]}


def stop_agents(ctx: SampleContext) -> None:
    """Interrupt whatever runs; each is put back, and goes on from its last commit later."""
    with suppress(RuntimeError):
        for agent in list(ctx.agents.values()):
            agent.interrupt()
