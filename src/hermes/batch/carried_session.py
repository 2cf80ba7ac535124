"""Sessions that were run in the store of another machine, carried into this one with their ledger."""

from collections.abc import Sequence

from msgspec import Struct

from hermes.dicts import from_dict, to_dict
from hermes.ops import (
    AttemptClosed,
    AttemptOpened,
    CallRecord,
    ContextAttached,
    MessageAppended,
    SessionCreated,
    StoreOp,
)
from hermes.state.queries import SessionStore
from hermes.typed import from_json
from hermes.types import JsonObject, Usage

_COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")


class CarriedSession(Struct, frozen=True, kw_only=True):
    """One session as plain values."""

    session_id: str
    source: str
    model: str | None
    model_config: JsonObject | None
    system_prompt: str | None
    tool_definitions: str | None
    cwd: str | None
    earlier: tuple[str, ...]
    messages: list[JsonObject]
    contexts: list[str]
    attempts: list[JsonObject]
    calls: dict[str, str]  # by attempt, as JSON


async def carry_out(store: SessionStore, session_id: str) -> list[CarriedSession]:
    """The session and those before it, oldest first; none when there is no such session."""
    last = await store.load(session_id)
    found = []
    for each in (*last.earlier, session_id) if last is not None else ():
        record = await store.load(each)
        if record is None:
            continue
        attempts = store.queries.records("attempts", each, 0.0, -1)
        calls = store.queries.records("model_calls", each, 0.0, -1)
        found.append(
            CarriedSession(
                session_id=each,
                source=record.source,
                model=record.model,
                model_config=record.model_config,
                system_prompt=record.system_prompt,
                tool_definitions=record.tool_definitions,
                cwd=record.cwd,
                earlier=record.earlier,
                messages=[to_dict(one) for one in record.messages],
                contexts=[record.contexts.get(one.id or -1, "") for one in record.messages],
                attempts=list(reversed(attempts)),
                calls={row["attempt_id"]: row["record"] for row in calls},
            )
        )
    return found


async def carry_in(store: SessionStore, sessions: Sequence[CarriedSession]) -> None:
    """Store them here, each whole or not at all; one that is here already stays as it is."""
    for one in sessions:
        if await store.load(one.session_id) is None:
            await store.commit(*_ops(one))


def _ops(one: CarriedSession) -> list[StoreOp]:
    ops: list[StoreOp] = [
        SessionCreated(
            session_id=one.session_id,
            source=one.source,
            model=one.model,
            model_config=one.model_config,
            system_prompt=one.system_prompt,
            tool_definitions=one.tool_definitions,
            cwd=one.cwd,
            parent_session_id=one.earlier[-1] if one.earlier else None,
        )
    ]
    for message, context in zip(one.messages, one.contexts, strict=True):
        ops.append(MessageAppended(one.session_id, from_dict(message), is_clean=True))
        if context:
            ops.append(ContextAttached(one.session_id, context))
    for row in one.attempts:
        ops += _attempt(one, row)
    return ops


def _attempt(one: CarriedSession, row: JsonObject) -> list[StoreOp]:
    name = str(row["attempt_id"])
    opened = AttemptOpened(
        attempt_id=name,
        session_id=one.session_id,
        purpose=row["purpose"],
        provider=row["provider"],
        model=row["model"],
        base_url=row["base_url"],
        started_at=row["started_at"],
    )
    closed = AttemptClosed(
        attempt_id=name,
        session_id=one.session_id,
        outcome=row["outcome"] or "unknown",
        usage=Usage(*(row[count] for count in _COUNTS)),
        cost_usd=row["cost_usd"],
        cost_source=row["cost_source"] or "none",
        latency_ms=row["latency_ms"] or 0.0,
        first_byte_ms=row["first_byte_ms"],
        error=row["error"],
        record=from_json(one.calls[name], CallRecord) if name in one.calls else None,
    )
    return [opened, closed]
