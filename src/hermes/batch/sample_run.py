"""One sample: an agent with a session and a workspace of its own, and what is kept of its conversation."""

import asyncio
import hashlib
import platform
import random
import shutil
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec import Struct

from hermes import AIAgent, __version__
from hermes.batch.dataset import Sample
from hermes.batch.distributions import Distribution
from hermes.batch.record import RecordSegment, make_record, verify_record
from hermes.batch.run_spec import RunSpec
from hermes.batch.sample_figures import (
    NO_REASONING,
    NOT_VERIFIED,
    UNKNOWN_TOOL,
    reasoning_figures,
    tool_figures,
)
from hermes.config.load import bound_settings
from hermes.config.sections import terminal
from hermes.config.settings import Settings
from hermes.dicts import to_dict
from hermes.ops import CallRecord, SessionRecord
from hermes.runtime.trajectory import ModelBriefing, conversations, dumped, timestamp
from hermes.seams import Sink
from hermes.state.batch_rows import SampleRow, SampleState
from hermes.state.queries import SessionStore
from hermes.tools.calling.pool import DaemonPool
from hermes.typed import from_json
from hermes.types import JsonObject

Hold = Callable[[int, int, str], Any]


class SampleContext(Struct, kw_only=True):
    """What all samples of a run in this process share."""

    spec: RunSpec
    settings: Settings
    store: SessionStore
    pool: DaemonPool
    distribution: Distribution
    known_tools: frozenset[str]
    toolsets: frozenset[str]  # that exist here
    sink: Sink | None = None
    agents: dict[int, AIAgent]  # at work now, by sample
    workspaces: Path  # where samples that name no folder have theirs
    hold: Hold | None = None  # called before a session begins, and durable when it returns


class SampleResult(Struct, frozen=True, kw_only=True):
    """How a sample ended: its row, and the packed line and record that it gives."""

    row: SampleRow
    body: bytes | None = None

    @property
    def is_ended(self) -> bool:
        return self.row.state != "waiting"


def packed(line: str, record: str) -> bytes:
    """A line of trajectories.jsonl and one of records.jsonl, as a row keeps them."""
    return zlib.compress(f"{line}\n{record}".encode(), 1)


def unpacked(body: bytes) -> tuple[str, str]:
    """The line and the record."""
    line, _, record = zlib.decompress(body).decode().partition("\n")
    return line, record


async def run_sample(ctx: SampleContext, sample: Sample, row: SampleRow) -> SampleResult:
    """Bring the sample to its end, going on with what an earlier process left of it.

    A session that was cut off goes on from its last commit. Where a call's outcome is unknown and the workspace is one
    that the run itself made, the sample begins anew in a fresh one: so the call is neither repeated nor a fault of ours
    taught. Where the folder is the user's, the model is told, as in any session. What is not on this machine went with
    the process that had it: such a sample begins anew.
    """
    session_id, attempt, kept = row.session_id, row.attempt, None
    settings = _settings(ctx, sample)
    is_here = settings.of(terminal.Section).backend == "local"
    if session_id and is_here:
        kept = await ctx.store.load(session_id)
        if kept is not None and not sample.cwd and any(one.is_started for one in kept.open_calls):
            kept = None
    if kept is None:
        attempt += 1
        session_id = f"batch_{ctx.spec.run_id}_{sample.index:06d}_{attempt}"
        if ctx.hold is not None:
            await ctx.pool.run(ctx.hold, sample.index, attempt, session_id)
    row = SampleRow(index=sample.index, digest=row.digest, attempt=attempt, session_id=session_id)
    drawn = _drawn(ctx, sample)
    workspace = await ctx.pool.run(_workspace, ctx.workspaces, sample, kept is None) if is_here else None
    with bound_settings(settings):
        agent = _agent(ctx, sample, row, drawn, str(workspace or sample.cwd))
        ctx.agents[sample.index] = agent
        try:
            verdict = await _verdict(ctx, agent, sample, kept)
        finally:
            ctx.agents.pop(sample.index, None)
            await agent.aclose()
    if verdict.get("interrupted"):
        return SampleResult(row=msgspec.structs.replace(row, state="waiting"))
    result = await ctx.pool.run(_result, ctx, sample, row, drawn, verdict)
    if workspace is not None and not sample.cwd and not ctx.spec.keeps_workspaces:
        await ctx.pool.run(shutil.rmtree, workspace, True)
    return result


def seed_of(spec: RunSpec, sample: Sample) -> int:
    """The sample's own seed: the same in every process and after every restart."""
    words = f"{spec.seed}\0{sample.index}\0{sample.digest}"
    return int.from_bytes(hashlib.sha256(words.encode()).digest()[:4], "big") >> 1


def _drawn(ctx: SampleContext, sample: Sample) -> list[str]:
    drawn = ctx.distribution.draw(random.Random(seed_of(ctx.spec, sample)))
    here = [name for name in drawn if name in ctx.toolsets]
    likely = sorted(ctx.distribution.toolsets, key=lambda name: -ctx.distribution.toolsets[name])
    return here or [name for name in likely if name in ctx.toolsets][:1]


def _workspace(root: Path, sample: Sample, is_fresh: bool) -> Path:
    if sample.cwd:
        return Path(sample.cwd).expanduser()
    folder = root / f"{sample.index:06d}"
    if is_fresh:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _settings(ctx: SampleContext, sample: Sample) -> Settings:
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


def _agent(ctx: SampleContext, sample: Sample, row: SampleRow, drawn: Sequence[str], cwd: str) -> AIAgent:
    spec = ctx.spec
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
        enabled_toolsets=list(drawn),
        cwd=cwd or None,
        session_id=row.session_id,
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
    if tip is not None and (ended := _ending(tip, ctx.spec.max_turns)) is not None:
        return ended
    return _told(await agent.acontinue_turn(), agent)


def _ending(session: SessionRecord, max_turns: int) -> JsonObject | None:
    """How a session ended that has its last word: killed after its last commit, before the sample's row knew of it."""
    last = session.messages[-1]
    if last.role != "assistant" or last.tool_calls or last.finish_reason == "length":
        return None
    answers = 0
    for message in session.messages:
        answers = 0 if message.role == "user" else answers + (message.role == "assistant")
    is_summary = answers > max_turns
    reason = f"max_iterations_reached({max_turns}/{max_turns})" if is_summary else "text_response"
    return {"session_id": session.session_id, "completed": not is_summary, "exit_reason": reason}


def _told(result: Mapping[str, Any], agent: AIAgent) -> JsonObject:
    names = ("session_id", "completed", "partial", "interrupted", "failed", "error", "model")
    told = {name: result.get(name) for name in names}
    return {**told, "exit_reason": result.get("turn_exit_reason"), "system": agent.told_first[0]}


def _result(
    ctx: SampleContext, sample: Sample, row: SampleRow, drawn: Sequence[str], verdict: Mapping[str, Any]
) -> SampleResult:
    """The row and what it gives, read from the store: the same whether the sample was disturbed or not."""
    spec, store = ctx.spec, ctx.store
    segments = _segments(store, str(verdict["session_id"]), spec, str(verdict.get("system") or ""))
    last = segments[-1].session
    messages = [to_dict(message) for message in last.messages]
    tools, reasoning = tool_figures(messages, ctx.known_tools), reasoning_figures(messages)
    usage, cost = last.totals, last.cost_usd
    tokens = (usage.prompt_tokens or 0) + (usage.output_tokens or 0)
    calls = sum(len(one.calls) for one in segments)
    facts: JsonObject = {
        "batch": spec.batch_of(sample.index),
        "completed": bool(verdict.get("completed")),
        "exit_reason": verdict.get("exit_reason"),
        "api_calls": calls,
        "tokens": tokens,
        "cost_usd": cost,
    }

    def ended(
        state: SampleState, reason: str = "", body: bytes | None = None, more: Mapping[str, Any] = {}
    ) -> SampleResult:
        done = msgspec.structs.replace(row, state=state, reason=reason, facts={**facts, **more})
        return SampleResult(row=done, body=body)

    if verdict.get("failed"):
        return ended("failed", str(verdict.get("error") or verdict.get("exit_reason")))
    counted = {name: one for name, one in tools.stats.items() if one["count"]}
    if not reasoning["turns_with_reasoning"] and not spec.keeps_unreasoned:
        return ended("dropped", NO_REASONING)
    line = {
        "prompt_index": sample.index,
        "conversations": conversations(messages, ModelBriefing(segments[-1].system, last.tool_definitions or "[]")),
        "metadata": {"batch_num": spec.batch_of(sample.index), "timestamp": timestamp(), "model": last.model},
        "completed": bool(verdict.get("completed")),
        "partial": bool(verdict.get("partial")),
        "api_calls": calls,
        "toolsets_used": list(drawn),
        "tool_stats": tools.stats,
        "tool_error_counts": tools.errors,
    }
    about: JsonObject = {
        "prompt_index": sample.index,
        "seed": seed_of(spec, sample),
        "environment": environment_of(ctx, sample, last),
    }
    record = make_record(about, segments, spec.prefill_messages)
    if problems := verify_record(record).problems:
        return ended("dropped", NOT_VERIFIED, None, {"problems": problems[:3]})
    body = packed(dumped(line), dumped(record))
    if tools.unknown:
        return ended("dropped", UNKNOWN_TOOL, body, {"unknown_tools": tools.unknown[:10]})
    return ended("done", "", body, {"tools": counted, "reasoning": reasoning})


def _segments(store: SessionStore, session_id: str, spec: RunSpec, system: str) -> list[RecordSegment]:
    found: list[RecordSegment] = []
    db = _reader(store)
    last = db(session_id)
    if last is None:
        raise LookupError(f"the session {session_id!r} is not in the store")
    for each in (*last.earlier, session_id):
        record = last if each == session_id else db(each)
        if record is None:
            continue
        ephemeral = f"\n\n{spec.ephemeral_system_prompt}" if spec.ephemeral_system_prompt else ""
        told = system if each == session_id and system else f"{record.system_prompt or ''}{ephemeral}"
        rows = store.queries.records("model_calls", each, 0.0, -1)
        calls = [from_json(row["record"], CallRecord) for row in reversed(rows)]
        found.append(RecordSegment(session=record, system=told, calls=calls))
    return found


def _reader(store: SessionStore) -> Callable[[str], SessionRecord | None]:
    """Sessions of the store for a plain thread."""
    sync = getattr(store, "load_sync", None)
    if sync is not None:
        return sync  # type: ignore[no-any-return]  # of the stores that have one
    return lambda session_id: asyncio.run(store.load(session_id))


def environment_of(ctx: SampleContext, sample: Sample, session: SessionRecord) -> JsonObject:
    """Where the sample was run, and the digest of that: two samples with one digest had the same surroundings."""
    facts: JsonObject = {
        "hermes": __version__,
        "python": platform.python_version(),
        "system": f"{sys.platform} {platform.machine()}",
        "backend": _settings(ctx, sample).of(terminal.Section).backend,
        "image": sample.image,
        "tools_sha256": hashlib.sha256((session.tool_definitions or "").encode()).hexdigest(),
    }
    digest = hashlib.sha256(msgspec.json.encode(facts, order="deterministic")).hexdigest()
    return {**facts, "digest": digest}


def stop_agents(ctx: SampleContext) -> None:
    """Interrupt whatever runs; each is put back, and goes on from its last commit later."""
    with suppress(RuntimeError):
        for agent in list(ctx.agents.values()):
            agent.interrupt()
