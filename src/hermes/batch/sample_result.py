"""What an ended conversation gives: its row, the line of its trajectory and its verifiable record."""

import hashlib
import logging
import platform
import sys
import zlib
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from hermes import __version__
from hermes.batch.dataset import Sample
from hermes.batch.record import RecordSegment, Renderer, briefing, make_record, verify_record
from hermes.batch.run_spec import RunSpec
from hermes.batch.sample_figures import (
    NO_REASONING,
    NOT_VERIFIED,
    UNKNOWN_TOOL,
    reasoning_figures,
    tool_figures,
)
from hermes.batch.sample_run import SampleContext, SampleEnd, load_session, sample_settings, seed_of, stored_calls
from hermes.config.sections import terminal
from hermes.dicts import to_dict
from hermes.errors import HermesError, StoreError
from hermes.ops import SessionRecord
from hermes.runtime.trajectory import conversations, dumped, timestamp
from hermes.state.batch_rows import SampleRow, SampleState
from hermes.state.queries import SessionStore
from hermes.types import JsonObject

log = logging.getLogger(__name__)
NO_ANSWER = "empty_response_exhausted"  # how a turn ends in which a model said nothing, however often it was asked


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


def result_of(ctx: SampleContext, end: SampleEnd, renderer: Renderer | None = None) -> SampleResult:
    """What the sample came to, for a plain thread; a fault in making it fails this sample and no other."""
    if end.verdict.get("interrupted"):
        return SampleResult(row=msgspec.structs.replace(end.row, state="waiting"))
    try:
        return _result(ctx, end, renderer)
    except Exception as error:  # noqa: BLE001 - the border of a sample; `failed` logs it
        return failed(end.row, error)


def failed(row: SampleRow, error: Exception) -> SampleResult:
    """A sample that could not be run, or whose conversation could not be read."""
    if not isinstance(error, HermesError):
        log.error("sample %d failed", row.index, exc_info=error)
    ended = SampleRow(
        index=row.index,
        digest=row.digest,
        state="failed",
        attempt=row.attempt,
        session_id=row.session_id,
        reason=str(error) if isinstance(error, HermesError) else repr(error),
        facts={"cost_usd": 0.0},
    )
    return SampleResult(row=ended)


def _result(ctx: SampleContext, end: SampleEnd, renderer: Renderer | None) -> SampleResult:
    """The row and what it gives, read from the store: the same whether the sample was disturbed or not."""
    spec, store, sample, row, verdict = ctx.spec, ctx.store, end.sample, end.row, end.verdict
    segments = _segments(store, str(verdict["session_id"]), spec, str(verdict.get("system") or ""))
    last = segments[-1].session
    messages = [to_dict(message) for message in last.messages]
    tools, reasoning = tool_figures(messages, ctx.known_tools), reasoning_figures(messages)
    usage, cost = last.totals, last.cost_usd
    tokens = (usage.prompt_tokens or 0) + (usage.output_tokens or 0)
    calls = sum(len(one.calls) for one in segments)
    cost = cost if calls else 0.0
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
        return ended("failed", _why(spec, verdict))
    if verdict.get("exit_reason") == NO_ANSWER or not reasoning["total_assistant_turns"]:
        return ended("failed", "the model gave no answer")
    counted = {name: one for name, one in tools.stats.items() if one["count"]}
    if not reasoning["turns_with_reasoning"] and not spec.keeps_unreasoned:
        return ended("dropped", NO_REASONING)
    told = briefing(segments[-1].system, spec.ephemeral_system_prompt, last.tool_definitions or "[]")
    line = {
        "prompt_index": sample.index,
        "conversations": conversations(messages, told),
        "metadata": {"batch_num": spec.batch_of(sample.index), "timestamp": timestamp(), "model": last.model},
        "completed": bool(verdict.get("completed")),
        "partial": bool(verdict.get("partial")),
        "api_calls": calls,
        "toolsets_used": end.drawn,
        "tool_stats": tools.stats,
        "tool_error_counts": tools.errors,
    }
    about: JsonObject = {
        "prompt_index": sample.index,
        "seed": seed_of(spec, sample),
        "environment": environment_of(ctx, sample, last),
    }
    if spec.ephemeral_system_prompt:
        about["ephemeral"] = spec.ephemeral_system_prompt
    record = make_record(about, segments, spec.prefill_messages, line)
    if problems := verify_record(record, renderer).problems:
        return ended("dropped", NOT_VERIFIED, None, {"problems": problems[:3]})
    body = packed(dumped(line), msgspec.json.encode(record).decode())
    if tools.unknown:
        return ended("dropped", UNKNOWN_TOOL, body, {"unknown_tools": tools.unknown[:10]})
    return ended("done", "", body, {"tools": counted, "reasoning": reasoning})


def _why(spec: RunSpec, verdict: Mapping[str, Any]) -> str:
    """Why a turn failed; a cap of the run's own is told by its option."""
    told = str(verdict.get("error") or verdict.get("exit_reason"))
    if verdict.get("exit_reason") != "spend_cap_reached" or (spec.sample_usd is None and spec.sample_tokens is None):
        return told
    spent = told.partition(". Raise")[0].removeprefix("the cap of this session is reached: ")
    option = "--sample-usd" if "$" in spent else "--sample-tokens"
    return f"the sample's budget is used up: {spent}. With another: hermes batch resume {spec.run_name} {option} N"


def _segments(store: SessionStore, session_id: str, spec: RunSpec, system: str) -> list[RecordSegment]:
    found: list[RecordSegment] = []
    last = load_session(store, session_id)
    if last is None:
        raise StoreError(f"the session {session_id!r} is not in the store")
    for each in (*last.earlier, session_id):
        record = last if each == session_id else load_session(store, each)
        if record is None:
            continue
        ephemeral = f"\n\n{spec.ephemeral_system_prompt}" if spec.ephemeral_system_prompt else ""
        told = system if each == session_id and system else f"{record.system_prompt or ''}{ephemeral}"
        found.append(RecordSegment(session=record, system=told, calls=stored_calls(store, each)))
    return found


def environment_of(ctx: SampleContext, sample: Sample, session: SessionRecord) -> JsonObject:
    """Where the sample was run, and the digest of that: two samples with one digest had the same surroundings."""
    facts: JsonObject = {
        "hermes": __version__,
        "python": platform.python_version(),
        "system": f"{sys.platform} {platform.machine()}",
        "backend": sample_settings(ctx, sample).of(terminal.Section).backend,
        "image": sample.image,
        "tools_sha256": hashlib.sha256((session.tool_definitions or "").encode()).hexdigest(),
    }
    digest = hashlib.sha256(msgspec.json.encode(facts, order="deterministic")).hexdigest()
    return {**facts, "digest": digest}
