"""A turn to run scripts in: a real environment and supervisor; the gate says yes and remembers what it was asked."""

import json
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hermes.ops import CallClosed, CallJournalled, SessionCreated
from hermes.runtime.context import Services, TurnContext
from hermes.runtime.joined_parts import JoinedParts
from hermes.runtime.parts.hooks import CallHooks
from hermes.runtime.tool_executor import run_calls
from hermes.scope import TurnScope
from hermes.seams import Environment, EventStore
from hermes.testing.fakes import CountedIds, FixedGate, MemorySink
from hermes.testing.memory_store import MemoryStore
from hermes.tools.builtin import execute_code as _execute_code  # noqa: F401 - registers
from hermes.tools.builtin import patch as _patch  # noqa: F401
from hermes.tools.builtin import read_file as _read_file  # noqa: F401
from hermes.tools.builtin import search_files as _search_files  # noqa: F401
from hermes.tools.builtin import terminal as _terminal  # noqa: F401
from hermes.tools.builtin import write_file as _write_file  # noqa: F401
from hermes.tools.calling.pool import DaemonPool
from hermes.tools.environments.local import LocalEnvironment, LocalOptions
from hermes.tools.hooks import Hooks
from hermes.tools.registry import Registered, registry
from hermes.tools.results.shelf import FileShelf
from hermes.tools.supervisor.supervisor import ProcessSupervisor
from hermes.tools.view import SessionView
from hermes.types import Content, ToolCall, ToolResult, text_of
from tests.runtime.rooms import Followed

FILE_TOOLS = ("read_file", "write_file", "search_files", "patch", "terminal")


class SystemClock:
    """Real time."""

    def __init__(self) -> None:
        import time

        self.now = time.time
        self.monotonic = time.perf_counter


@dataclass
class Room:
    """A turn and what can be seen of it."""

    ctx: TurnContext
    gate: FixedGate
    sink: MemorySink
    hooks: Hooks
    store: EventStore
    folder: Path
    calls: int = 0
    results: list[ToolResult] = field(default_factory=list)

    async def run(self, code: str) -> dict[str, Any]:
        """One `execute_code` call through the executor; its result object."""
        self.calls += 1
        call = ToolCall(f"call_{self.calls}", "execute_code", json.dumps({"code": code}))

        (result,) = await run_calls(self.ctx, [call], Followed(self.sink))
        self.results.append(result)
        return body(result.content)

    def journal(self) -> list[tuple[str, str]]:
        """What was opened and closed, in order."""
        assert isinstance(self.store, MemoryStore)
        rows: list[tuple[str, str]] = []
        for commit in self.store.commits:
            for op in commit:
                if isinstance(op, CallJournalled):
                    rows.append((op.call.id, op.call.name))
                elif isinstance(op, CallClosed):
                    rows.append((op.call_id, op.status))
        return rows


def is_there(path: str) -> bool:
    """Whether anything has that name, also a link that leads nowhere."""
    return os.path.lexists(path)


def body(content: Content) -> dict[str, Any]:
    value = json.loads(text_of(content))
    assert isinstance(value, dict)
    return value


def builtin(*names: str) -> list[Registered]:
    found = [registry.get(name) for name in names]
    assert all(found)
    return [one for one in found if one is not None]


@asynccontextmanager
async def room(
    folder: Path,
    *tools: Registered,
    settings: dict[str, Any] | None = None,
    environment: Environment | None = None,
    supervisor: ProcessSupervisor | None = None,
    store: EventStore | None = None,
    gate: FixedGate | None = None,
) -> AsyncIterator[Room]:
    """An open turn over `tools` and `execute_code`; by default over the file tools and the terminal."""
    own_supervisor, pool = supervisor or ProcessSupervisor(), DaemonPool()
    work = folder / "work"
    work.mkdir(exist_ok=True)
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8"}
    place = environment or LocalEnvironment(own_supervisor, str(work), LocalOptions(env=env, source_bashrc=False))
    gate = gate or FixedGate()
    sink, hooks = MemorySink(), Hooks(pool)
    store = store or MemoryStore()
    await store.commit(SessionCreated(session_id="s1"))
    services = Services(
        store=store,
        environment=place,
        supervisor=own_supervisor,
        gate=gate,
        hooks=hooks,
        parts=JoinedParts({"hooks": CallHooks(hooks)}),
        shelf=FileShelf(folder / "results", pool.run),
        pool=pool,
        clock=SystemClock(),
        ids=CountedIds(),
        log=logging.getLogger("tests"),
        settings=settings or {},
    )
    scope = TurnScope(timeout_s=120)
    ctx = TurnContext(
        session_id="s1",
        turn_id="t1",
        task_id="s1",
        services=services,
        tools=SessionView.of(*(tools or builtin(*FILE_TOOLS)), *builtin("execute_code")),
        scope=scope,
        sink=sink,
    )
    try:
        async with scope:
            yield Room(ctx, gate, sink, hooks, store, work)
    finally:
        if environment is None:
            await place.close()
        if supervisor is None:
            await own_supervisor.close()
        pool.close()
