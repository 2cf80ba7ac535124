"""A turn to run tools in: all of it real but the environment, which is a folder, and the gate, which says yes."""

import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from msgspec import structs

from hermes.runtime.context import Services, TurnContext
from hermes.runtime.guardrails import Guardrails
from hermes.runtime.joined_parts import JoinedParts
from hermes.runtime.parts.hooks import CallHooks
from hermes.runtime.tool_executor import run_calls
from hermes.scope import TurnScope
from hermes.seams import Action, Clock, Decision, Environment, EventStore, Gate, Ids, Sink, Supervisor, ToolView
from hermes.tools.calling.pool import DaemonPool
from hermes.tools.hooks import Hooks
from hermes.tools.registry import Registered, ToolEntry
from hermes.tools.results.shelf import FileShelf
from hermes.tools.traits import Origin, Traits
from hermes.tools.view import SessionView
from hermes.types import CallFinished, CallStarted, Event, ToolCall, ToolResult


@dataclass
class Folder:
    """Just enough of a local environment for tools that only ask where they are."""

    cwd: str
    kind: str = "local"
    id: str = "folder"


class Yes:
    """A gate that allows everything."""

    async def decide(self, action: Action, scope: TurnScope) -> Decision:
        return Decision(allowed=True)


class RealClock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


@dataclass
class Events:
    """A sink that keeps what it is sent."""

    seen: list[Event] = field(default_factory=list)

    def emit(self, event: Event) -> None:
        self.seen.append(event)

    def started(self) -> list[str]:
        return [event.call.id for event in self.seen if isinstance(event, CallStarted)]

    def finished(self) -> list[str]:
        return [event.call.id for event in self.seen if isinstance(event, CallFinished)]


@dataclass
class Followed:
    """`RoundLog` that keeps what it is told, and shows it at once."""

    sink: Sink
    persisted: list[tuple[list[str], list[str]]] = field(default_factory=list)  # results, and calls that start

    async def persist(self, results: Sequence[ToolResult], starting: Sequence[ToolCall]) -> None:
        self.persisted.append(([result.call_id for result in results], [call.id for call in starting]))

    def started(self, call: ToolCall, args: dict[str, Any]) -> None:
        self.sink.emit(CallStarted(call, args))

    def finished(self, call: ToolCall, args: dict[str, Any], result: ToolResult) -> None:
        self.sink.emit(CallFinished(call, args, result))


@dataclass
class Room:
    """A turn, its events, and what was persisted on the way."""

    ctx: TurnContext
    events: Events
    hooks: Hooks
    guardrails: Guardrails
    persisted: list[tuple[list[str], list[str]]] = field(default_factory=list)  # results, and calls that start

    async def run(self, *calls: ToolCall) -> list[ToolResult]:
        return await run_calls(self.ctx, calls, Followed(self.ctx.sink, self.persisted), self.guardrails)

    def over(self, view: ToolView) -> "Room":
        """The same room with other tools."""
        return replace(self, ctx=structs.replace(self.ctx, tools=view))

    async def one(self, name: str, arguments: str = "{}") -> ToolResult:
        (result,) = await self.run(ToolCall("c1", name, arguments))
        return result


@asynccontextmanager
async def room(
    folder: Path,
    *tools: Registered,
    settings: dict[str, Any] | None = None,
    timeout_s: float | None = 30.0,
    environment: Environment | None = None,
) -> AsyncIterator[Room]:
    """An open turn over `tools`."""
    events, hooks, pool = Events(), Hooks(), DaemonPool()
    services = Services(
        store=cast("EventStore", None),
        environment=environment or cast("Environment", Folder(str(folder))),
        supervisor=cast("Supervisor", None),
        gate=cast("Gate", Yes()),
        hooks=hooks,
        parts=JoinedParts({"hooks": CallHooks(hooks)}),
        shelf=FileShelf(folder / "results", pool.run),
        pool=pool,
        clock=cast("Clock", RealClock()),
        ids=cast("Ids", None),
        log=logging.getLogger("tests"),
        settings=settings or {},
    )
    scope = TurnScope(timeout_s=timeout_s)
    ctx = TurnContext(
        session_id="s1",
        turn_id="t1",
        task_id="s1",
        services=services,
        tools=SessionView.of(*tools),
        scope=scope,
        sink=events,
    )
    async with scope:
        yield Room(ctx, events, hooks, Guardrails())
    pool.close()


def tool(
    name: str,
    handler: Any,
    parameters: dict[str, Any] | None = None,
    *,
    traits: Traits | None = None,
    origin: Origin = "code",
    **more: Any,
) -> Registered:
    """A registration for a test."""
    schema = {"name": name, "description": name, "parameters": parameters or {"type": "object", "properties": {}}}
    return Registered(ToolEntry(name, "test", schema, handler, **more), traits or Traits(), origin)
