"""`process`: look after background processes that `terminal` started."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from hermes.errors import ToolError
from hermes.seams import Action, ToolContext
from hermes.tools.calling.arguments import parse_args, schema_of
from hermes.tools.environments.background import Background, BackgroundRecord, State, background_of
from hermes.tools.registry import registry, tool_error, tool_result
from hermes.tools.terminal.output_text import text_of
from hermes.tools.traits import Traits

_LOOK_AGAIN_S = 0.1
_DEFAULT_WAIT_S = 180.0


class ProcessArgs(Struct, frozen=True, forbid_unknown_fields=True):
    """Look after background processes started with terminal(background=true). Actions: list; poll (status and new
    output); log (all output, paged by lines); wait (until it ends or the timeout); kill; write (raw text to its stdin);
    submit (text and Enter); close (end of its stdin)."""

    action: Annotated[
        Literal["list", "poll", "log", "wait", "kill", "write", "submit", "close"], Meta(description="What to do.")
    ]
    session_id: Annotated[str, Meta(description="Which process; for every action but list.")] | UnsetType = UNSET
    data: Annotated[str, Meta(description="Text for write and submit.")] | UnsetType = UNSET
    timeout: Annotated[int, Meta(ge=1, description="Seconds to wait, for wait.")] | UnsetType = UNSET
    offset: Annotated[int, Meta(description="First line for log; 0 means the last lines.")] = 0
    limit: Annotated[int, Meta(ge=1, description="How many lines, for log.")] = 200


class ProcessRequest(Struct, frozen=True):
    """One call about one process."""

    wanted: ProcessArgs
    record: BackgroundRecord
    background: Background
    ctx: ToolContext


async def process(args: Mapping[str, object], *, ctx: ToolContext, **_: object) -> str:
    wanted = parse_args(args, ProcessArgs)
    background = background_of(ctx.environment)
    if wanted.action == "list":
        records = await background.records(ctx.task_id)
        return tool_result(processes=[await _listed(record, background) for record in records])
    if not wanted.session_id:
        return tool_error(f"session_id is required for {wanted.action}")
    record = await background.find(wanted.session_id)
    if record is None:
        return tool_result(status="not_found", error=f"no background process {wanted.session_id!r}; try action list")
    return await _ACTIONS[wanted.action](ProcessRequest(wanted, record, background, ctx))


async def _listed(record: BackgroundRecord, background: Background) -> dict[str, object]:
    state = await background.state(record)
    output = text_of(await background.log(record))
    facts: dict[str, object] = {
        "session_id": record.id,
        "command": record.order.command[:200],
        "cwd": record.order.cwd,
        "pid": record.pid,
        "started_at": record.started_at,
        "uptime_seconds": _uptime(record, state),
        "status": state.status,
        "output_preview": output[-200:],
    }
    if state.status == "exited":
        facts["exit_code"] = state.exit_code
    return facts


async def _poll(asked: ProcessRequest) -> str:
    state = await _seen(asked)
    output = text_of(await asked.background.log(asked.record))
    facts: dict[str, object] = {
        "session_id": asked.record.id,
        "command": asked.record.order.command,
        "status": state.status,
        "pid": asked.record.pid,
        "uptime_seconds": _uptime(asked.record, state),
        "output_preview": output[-1000:],
    }
    if state.status == "exited":
        facts["exit_code"] = state.exit_code
    return tool_result(facts)


async def _log(asked: ProcessRequest) -> str:
    state = await _seen(asked)
    lines = text_of(await asked.background.log(asked.record)).splitlines()
    limit = asked.wanted.limit
    first = max(0, len(lines) - limit) if asked.wanted.offset == 0 else max(0, asked.wanted.offset - 1)
    shown = lines[first : first + limit]
    return tool_result(
        session_id=asked.record.id,
        status=state.status,
        output="\n".join(shown),
        total_lines=len(lines),
        showing=f"{first + 1}-{first + len(shown)}" if shown else "none",
    )


async def _wait(asked: ProcessRequest) -> str:
    settings = asked.ctx.settings.get("terminal") or {}
    most = float(settings.get("timeout") or _DEFAULT_WAIT_S)
    wanted = float(asked.wanted.timeout or most)
    limit_s = asked.ctx.scope.limit(min(wanted, most))
    note = f"waited {most:g} s, the most one call may; wait again" if wanted > most else None
    try:
        async with asyncio.timeout(limit_s):
            # Looked at again and again: the process may be held for an earlier runtime, with nothing here to await.
            while (state := await asked.background.state(asked.record)).status == "running":  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_AGAIN_S)
    except TimeoutError:
        output = text_of(await asked.background.log(asked.record))
        facts: dict[str, object] = {"session_id": asked.record.id, "status": "timeout", "output": output[-1000:]}
        if note:
            facts["timeout_note"] = note
        return tool_result(facts)
    await asked.background.mark_seen(asked.record)
    output = text_of(await asked.background.log(asked.record))
    return tool_result(session_id=asked.record.id, status="exited", exit_code=state.exit_code, output=output[-2000:])


async def _kill(asked: ProcessRequest) -> str:
    killed = await asked.background.kill(asked.record)
    state = await _seen(asked)
    return tool_result(
        session_id=asked.record.id, status="killed" if killed else "already_exited", exit_code=state.exit_code
    )


async def _write(asked: ProcessRequest) -> str:
    data = (asked.wanted.data or "").encode("utf-8", "replace")
    if asked.wanted.action == "submit":
        # A terminal's Enter key sends a carriage return; a pipe's lines end in a newline.
        data += b"\r" if asked.record.order.pty else b"\n"
    reason = await refused_typing(asked.ctx, asked.record, data.decode("utf-8", "replace"))
    if reason is not None:
        return tool_result(session_id=asked.record.id, status="blocked", error=reason)
    return await _to_stdin(asked, asked.background.write(asked.record, data), bytes_written=len(data))


async def _close(asked: ProcessRequest) -> str:
    return await _to_stdin(asked, asked.background.close_stdin(asked.record), message="stdin closed")


async def _to_stdin(asked: ProcessRequest, sending: Awaitable[None], **facts: object) -> str:
    try:
        await sending
    except ToolError as error:
        state = await asked.background.state(asked.record)
        status = "already_exited" if state.status == "exited" else "error"
        return tool_result(session_id=asked.record.id, status=status, error=str(error))
    return tool_result(session_id=asked.record.id, status="ok", **facts)


async def _seen(asked: ProcessRequest) -> State:
    """How it stands; an end that is shown needs no notice any more."""
    state = await asked.background.state(asked.record)
    if state.status == "exited":
        await asked.background.mark_seen(asked.record)
    return state


def _uptime(record: BackgroundRecord, state: State) -> float:
    return round((state.ended_at or time.time()) - record.started_at, 1)


_ACTIONS: dict[str, Callable[[ProcessRequest], Awaitable[str]]] = {
    "poll": _poll,
    "log": _log,
    "wait": _wait,
    "kill": _kill,
    "write": _write,
    "submit": _write,
    "close": _close,
}

registry.register(
    name="process",
    toolset="terminal",
    schema=schema_of("process", ProcessArgs),
    handler=process,
    is_async=True,
    emoji="⚙️",
    traits=Traits(timeout_s=None),
)


_KEY = "typed"
_MAX_KEPT = 4096
_CODE = re.compile(r"(?:\A|[\s/])(?:python|ipython|pypy)[\d.]*(?=\s|\Z)")


async def refused_typing(ctx: ToolContext, record: BackgroundRecord, data: str) -> str | None:
    """Why `data` may not be sent to the process, or None. A line is judged whole, in however many pieces it comes."""
    lines: dict[str, str] = _lines(ctx.memo)
    text = lines.get(record.id, "") + data.replace("\r", "\n")
    action = Action(
        kind="code" if _CODE.search(record.order.command) else "command",
        tool="process",
        text=text,
        cwd=record.order.cwd,
        backend=ctx.environment.kind,
        route="pty" if record.order.pty else "background",
        session_id=ctx.session_id,
        task_id=ctx.task_id,
        details={"typed_into": record.order.command},
    )
    decision = await ctx.gate.decide(action, ctx.scope)
    if not decision.allowed:
        return decision.reason or "this was not allowed"
    lines[record.id] = text.rpartition("\n")[2][-_MAX_KEPT:]
    return None


def _lines(memo: dict[str, Any]) -> dict[str, str]:
    """The unfinished line of each process."""
    found = memo.setdefault(_KEY, {})
    assert isinstance(found, dict)
    return found
