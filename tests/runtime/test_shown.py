"""What is shown as done is stored: a reader of events never knows more than the file does."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hermes import AIAgent
from hermes.errors import StoreError
from hermes.ops import CallJournalled, MessageAppended, SessionCreated
from hermes.runtime.requests import NOT_RUN, OUTCOME_UNKNOWN
from hermes.seams import Effects
from hermes.state import SqliteStore
from hermes.testing.memory_store import MemoryStore
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import calls, calls_with, says
from hermes.tools.registry import registry, tool_result
from hermes.tools.traits import Traits
from hermes.types import (
    CallFinished,
    CallStarted,
    Event,
    Message,
    SessionRotated,
    ToolCall,
    TurnFinished,
    TurnStarted,
    text_of,
)


class Checking:
    """A sink that looks into the file, as another process would, whenever it is told something."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seen: list[str] = []
        self.missing: list[Event] = []

    def emit(self, event: Event) -> None:
        if isinstance(event, CallStarted | CallFinished):
            self.seen.append(f"{type(event).__name__} {event.call.id}")
        else:
            self.seen.append(type(event).__name__)
        if not self._is_stored(event):
            self.missing.append(event)

    def _is_stored(self, event: Event) -> bool:
        match event:
            case TurnStarted():
                return self._has("SELECT 1 FROM messages WHERE session_id = ? AND role = 'user'", event.session_id)
            case CallStarted():
                # One that was refused is shown with its result.
                return self._has(
                    "SELECT 1 FROM tool_runs WHERE call_id = ? AND (started_at > 0 OR status = 'failed')", event.call.id
                )
            case CallFinished():
                content = text_of(event.result.content)
                return self._has(
                    "SELECT 1 FROM messages WHERE tool_call_id = ? AND content = ?", event.call.id, content
                )
            case SessionRotated():
                return self._has("SELECT 1 FROM sessions WHERE id = ?", event.session_id)
            case TurnFinished() if event.completed:
                sql = "SELECT 1 FROM messages WHERE session_id = ? AND role = 'assistant' AND finish_reason = 'stop'"
                return self._has(sql, event.session_id)
            case _:
                return True

    def _has(self, sql: str, *values: str) -> bool:
        with closing(sqlite3.connect(self.path)) as conn:
            return conn.execute(sql, values).fetchone() is not None


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    made = SqliteStore(tmp_path / "state.db")
    yield made
    await made.close()


@pytest.fixture
def ran() -> Iterator[list[str]]:
    """The keys that `mark` was called with; calls of one key keep their order."""
    keys: list[str] = []

    async def mark(args: dict[str, Any], **_: Any) -> str:
        keys.append(args["key"])
        await asyncio.sleep(0)
        return tool_result(key=args["key"])

    schema = {
        "name": "mark",
        "description": "Mark it.",
        "parameters": {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]},
    }
    traits = Traits(effects=lambda args, _: Effects(writes=frozenset({args["key"]})))
    registry.register(name="mark", toolset="testing", schema=schema, handler=mark, is_async=True, traits=traits)
    yield keys
    registry.deregister("mark")


async def test_every_event_is_in_the_file_when_it_is_shown(store: SqliteStore, ran: list[str]) -> None:
    sink = Checking(store.path)
    asked = calls("mark", key="a") + calls("mark", key="b") + calls("mark", key="a") + calls("nonsense")
    script = [says("I begin.") + asked, calls_with("mark", '{"key": "cut'), calls("mark", key="c"), says("Done.")]
    agent = AIAgent(model=ScriptedModel(*script), store=store, cwd=str(store.path.parent), sink=sink)
    result = await agent.arun_conversation("go")
    assert result["completed"]
    assert ran == ["a", "b", "c"], "one asked for twice over is one"
    assert sink.missing == []
    assert sink.seen[0] == "TurnStarted"
    assert sink.seen[-1] == "TurnFinished"
    assert sum(name.startswith("CallFinished") for name in sink.seen) == 5


async def test_a_turn_that_is_refused_or_cannot_be_stored_shows_nothing(ran: list[str], tmp_path: Path) -> None:
    store = MemoryStore()
    shown: list[Event] = []

    class Keep:
        def emit(self, event: Event) -> None:
            shown.append(event)

    store.fail_next(StoreError("the write failed: disk full"))
    agent = AIAgent(model=ScriptedModel(says("x")), store=store, cwd=str(tmp_path), sink=Keep())
    result = await agent.arun_conversation("go")
    assert result["failed"]
    assert [type(event) for event in shown] == [TurnFinished]


async def test_results_that_could_not_be_stored_are_not_shown(ran: list[str], tmp_path: Path) -> None:
    class Failing(MemoryStore):
        async def commit(self, *ops: Any) -> tuple[int, ...]:
            if any(isinstance(op, MessageAppended) and op.message.role == "tool" for op in ops):
                raise StoreError("the write failed: disk full")
            return await super().commit(*ops)

    shown: list[Event] = []

    class Keep:
        def emit(self, event: Event) -> None:
            shown.append(event)

    agent = AIAgent(model=ScriptedModel(calls("mark", key="a")), store=Failing(), cwd=str(tmp_path), sink=Keep())
    assert (await agent.arun_conversation("go"))["failed"]
    assert ran == ["a"]
    assert any(isinstance(event, CallStarted) for event in shown)
    assert not any(isinstance(event, CallFinished) for event in shown)


async def test_a_call_that_only_waited_is_told_as_not_run(tmp_path: Path) -> None:
    store = MemoryStore()
    first, second = ToolCall("c1", "terminal", '{"command": "sleep 6"}'), ToolCall("c2", "todo", "{}")
    await store.commit(
        SessionCreated(session_id="s"),
        MessageAppended("s", Message(role="user", content="go")),
        MessageAppended("s", Message(role="assistant", tool_calls=(first, second))),
        CallJournalled("s", first),
        CallJournalled("s", second, is_started=False),
    )
    model = ScriptedModel(says("I see."))
    await AIAgent(model=model, store=store, session_id="s", cwd=str(tmp_path)).arun_conversation("what happened?")
    told = {m.tool_call_id: (text_of(m.content), m.status) for m in model.requests[0] if m.role == "tool"}
    assert told == {"c1": (OUTCOME_UNKNOWN, "unknown"), "c2": (NOT_RUN, "cancelled")}


async def test_a_call_is_marked_as_started_before_it_runs_and_not_earlier(store: SqliteStore, ran: list[str]) -> None:
    seen: list[list[tuple[str, bool]]] = []

    async def look(args: dict[str, Any], **_: Any) -> str:
        rows = store.read(lambda conn: conn.execute("SELECT name, started_at FROM tool_runs ORDER BY id").fetchall())
        seen.append([(name, started > 0) for name, started in rows])
        return tool_result(key=args.get("n"))

    schema = {"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {"n": {}}}}
    registry.register(name="look", toolset="testing", schema=schema, handler=look, is_async=True)
    try:
        asked = calls("look", n=1) + calls("mark", key="a") + calls("look", n=2)
        agent = AIAgent(model=ScriptedModel(asked, says("Done.")), store=store, cwd=str(store.path.parent))
        await agent.arun_conversation("go")
    finally:
        registry.deregister("look")
    assert seen == [
        [("look", True), ("mark", False), ("look", False)],
        [("look", True), ("mark", True), ("look", True)],
    ]


async def test_calls_beyond_those_that_run_at_once_are_marked_when_they_get_a_place(store: SqliteStore) -> None:
    waiting: list[int] = []
    all_begun, go_on = asyncio.Event(), asyncio.Event()
    begun = 0

    async def hold(args: dict[str, Any], **_: Any) -> str:
        nonlocal begun
        begun += 1
        if begun == 8:
            sql = "SELECT count(*) FROM tool_runs WHERE started_at = 0"
            waiting.append(store.read(lambda conn: conn.execute(sql).fetchone()[0]))
            all_begun.set()
        await all_begun.wait()
        await go_on.wait()
        return "{}"

    schema = {"name": "hold", "description": "Hold.", "parameters": {"type": "object", "properties": {"n": {}}}}
    traits = Traits(effects=lambda *_: Effects())
    registry.register(name="hold", toolset="testing", schema=schema, handler=hold, is_async=True, traits=traits)
    try:
        asked = calls("hold", n=0)
        for number in range(1, 11):
            asked += calls("hold", n=number)
        agent = AIAgent(model=ScriptedModel(asked, says("Done.")), store=store, cwd=str(store.path.parent))
        async with asyncio.TaskGroup() as group:
            turn = group.create_task(agent.arun_conversation("go"))
            await all_begun.wait()
            go_on.set()
    finally:
        registry.deregister("hold")
    assert turn.result()["completed"]
    assert (begun, waiting) == (11, [3])


@pytest.mark.usefixtures("ran")
async def test_what_the_user_says_meanwhile_is_told_also_when_the_last_result_is_stored_already(
    store: SqliteStore,
) -> None:
    async def steer(args: dict[str, Any], **_: Any) -> str:
        if args["key"] == "b":
            agent.steer("use tabs")
        return "{}"

    schema = {
        "name": "turn",
        "description": "Turn.",
        "parameters": {"type": "object", "properties": {"key": {}, "n": {}}},
    }
    traits = Traits(effects=lambda args, _: Effects(writes=frozenset(args["key"])))
    registry.register(name="turn", toolset="testing", schema=schema, handler=steer, is_async=True, traits=traits)
    try:
        # The third runs with the first, and the second after both.
        asked = calls("turn", key="b") + calls("turn", key="b", n=2) + calls("turn", key="c")
        model = ScriptedModel(asked, says("Done."))
        agent = AIAgent(model=model, store=store, cwd=str(store.path.parent))
        await agent.arun_conversation("go")
    finally:
        registry.deregister("turn")
    assert any("use tabs" in text_of(message.content) for message in model.requests[1])
