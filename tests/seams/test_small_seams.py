"""The contract of each small seam, held against every implementation and its fake."""

import asyncio
import copy
import inspect
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hermes.confinement.policy import Outside
from hermes.context.compressor import ContextCompressor, SummaryRequest
from hermes.dicts import from_dict, to_dict
from hermes.errors import StoreError, ToolError
from hermes.runtime.facade import CallerSink
from hermes.runtime.prompt import DateLine, EnvironmentHint, FixedText, Identity, ProjectRules, build_prompt
from hermes.runtime.requests import OUTCOME_UNKNOWN, build_units
from hermes.runtime.setup.process import RandomIds, SystemClock
from hermes.scope import TurnScope
from hermes.seams import (
    Action,
    Clock,
    ContextEngine,
    Decision,
    Gate,
    Ids,
    PromptSource,
    ResultShelf,
    Sink,
    SpawnSpec,
    Supervisor,
)
from hermes.testing.fakes import CountedIds, FixedGate, HandClock, KeepLast, MemorySink
from hermes.testing.memory_store import MemoryStore
from hermes.testing.workplace import FakeSupervisor, MemoryEnvironment, MemoryShelf
from hermes.tools.approval.gate_setup import disk_view, make_gate
from hermes.tools.approval.queue import ask_callback
from hermes.tools.calling.pool import DaemonPool
from hermes.tools.results.shelf import FileShelf
from hermes.tools.supervisor.supervisor import ProcessSupervisor
from hermes.types import Event, Message, StatusChanged, TextDelta, ToolCall, text_of


@pytest.mark.parametrize("clock", [SystemClock(), HandClock()])
def test_a_clock_never_goes_back(clock: Clock) -> None:
    assert clock.now() > 0
    first = clock.monotonic()
    assert clock.monotonic() >= first


@pytest.mark.parametrize("ids", [RandomIds(), CountedIds()])
def test_ids_are_fresh_and_in_form(ids: Ids) -> None:
    assert re.fullmatch(r"\d{8}_\d{6}_[0-9a-f]{6}", ids.session())
    made = [ids.new("call") for _ in range(100)]
    assert len(set(made)) == 100
    assert all(re.fullmatch(r"call_\w+", one) for one in made)


@pytest.mark.parametrize("kind", ["memory", "caller"])
def test_a_sink_takes_events_in_order_and_never_blocks(kind: str) -> None:
    seen: list[Event] = []
    caller = CallerSink(seen.append)
    memory = MemorySink()
    sink: Sink = caller if kind == "caller" else memory
    events: list[Event] = [StatusChanged("warning", str(n)) for n in range(20_000)]
    for event in events:
        sink.emit(event)
    caller.close()
    caller.drain()
    assert (seen if kind == "caller" else memory.events) == events


def test_a_slow_caller_loses_deltas_and_nothing_else() -> None:
    seen: list[Event] = []
    sink = CallerSink(seen.append)
    for n in range(15_000):
        sink.emit(TextDelta("x"))
        if n % 100 == 0:
            sink.emit(StatusChanged("secret", str(n)))
    sink.close()
    sink.drain()
    assert sum(isinstance(event, StatusChanged) for event in seen) == 150
    assert sum(isinstance(event, TextDelta) for event in seen) <= 10_000


@pytest.fixture(params=["memory", "files"])
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> ResultShelf:
    return MemoryShelf() if request.param == "memory" else FileShelf(tmp_path / "results")


async def test_a_shelf_gives_back_every_byte_by_its_handle(shelf: ResultShelf, tmp_path: Path) -> None:
    data = bytes(range(256)) * 40
    handle = await shelf.put("terminal", data)
    assert handle.startswith("hermes://result/")
    assert await shelf.read(handle) == data
    assert await shelf.read(handle, 100, 7) == data[100:107]
    assert await shelf.size(handle) == len(data)
    other = await shelf.put("terminal", data)
    assert other != handle
    file = tmp_path / "spill"
    file.write_bytes(b"whole")
    assert await shelf.read(await shelf.put_file("terminal", str(file))) == b"whole"
    with pytest.raises(ToolError):
        await shelf.read("hermes://result/none")


@pytest.fixture(params=["fake", "real"])
async def supervisor(request: pytest.FixtureRequest) -> AsyncIterator[Supervisor]:
    one: Supervisor = FakeSupervisor(b"hello\n") if request.param == "fake" else ProcessSupervisor()
    yield one
    await one.close()


async def test_a_supervisor_starts_nothing_without_an_allowed_decision(supervisor: Supervisor, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    spec = SpawnSpec(argv=("/bin/touch", str(mark)), cwd=str(tmp_path), env={}, confinement=Outside("terminal program"))
    with pytest.raises(ToolError):
        await supervisor.spawn(Decision(allowed=False, reason="no"), spec)
    assert not mark.exists()


async def test_a_child_says_all_it_has_to_say_and_ends(supervisor: Supervisor, tmp_path: Path) -> None:
    spec = SpawnSpec(argv=("/bin/echo", "hello"), cwd=str(tmp_path), env={}, confinement=Outside("terminal program"))
    child = await supervisor.spawn(Decision.own("test"), spec)
    try:
        assert b"".join([chunk async for chunk in child.output()]) == b"hello\n"
        assert await asyncio.wait_for(child.wait(), 10) == 0
        assert child.is_gone
    finally:
        child.release()


def gates(store: MemoryStore, home: Path) -> dict[str, Gate]:
    return {
        "fixed": FixedGate(allowed=False, reason="choose another way"),
        "nobody": approval_gate(store, home, None),
        "person says no": approval_gate(store, home, lambda _: False),
    }


def approval_gate(store: MemoryStore, home: Path, callback: Callable[..., Any] | None) -> Gate:
    run = DaemonPool().run
    gate = make_gate(home, {}, disk_view(home, {}, "memory", "/work"), store, run)
    return replace(gate, ask=ask_callback(callback, run)) if callback else gate


@pytest.mark.parametrize("name", ["fixed", "nobody", "person says no"])
async def test_a_gate_that_denies_gives_the_model_a_reason_and_no_key(name: str, hermes_home: Path) -> None:
    store = MemoryStore()
    action = Action(kind="command", tool="terminal", text="rm -rf x")
    decision = await gates(store, hermes_home)[name].decide(action, TurnScope())
    assert not decision.allowed
    assert decision.reason
    assert not re.search(r"config|setting|mode|allowlist|--yolo", decision.reason)
    if name != "fixed":
        assert [(row.verdict, row.action) for row in store.approvals] == [("deny", "rm -rf x")]


async def test_a_decision_that_cannot_be_recorded_is_no_decision(hermes_home: Path) -> None:
    store = MemoryStore()
    store.fail_next(StoreError("the disk is full"))
    gate = approval_gate(store, hermes_home, lambda _: True)
    with pytest.raises(StoreError):
        await gate.decide(Action(kind="command", tool="terminal", text="ls"), TurnScope())


def prompt_sources(home: Path) -> list[PromptSource]:
    environment = MemoryEnvironment()
    environment.files["/work/AGENTS.md"] = b"---\nx: 1\n---\nUse tabs."
    return [
        DateLine(0.0),
        ProjectRules(environment),
        FixedText("1-caller", "context", "Be brief."),
        EnvironmentHint(environment),
        Identity(home),
    ]


async def test_prompt_sources_are_the_same_each_time_and_joined_in_order(tmp_path: Path) -> None:
    (tmp_path / "SOUL.md").write_text("I am the soul.")
    session: dict[str, Any] = {"session_id": "s", "model": "m"}
    once = await build_prompt(prompt_sources(tmp_path), session)
    assert once == await build_prompt(prompt_sources(tmp_path), session)
    places = [
        once.text.index(part) for part in ("I am the soul.", "memory backend", "Be brief.", "Use tabs.", "Conversation")
    ]
    assert places == sorted(places)


def long_history() -> list[Message]:
    messages: list[Message] = []
    for number in range(20):
        call = ToolCall(f"call_{number}", "todo", "{}")
        messages += [
            Message(role="user", content=f"question {number} " + "x" * 200),
            Message(role="assistant", content="", tool_calls=(call,)),
            Message(role="tool", content="{}", tool_call_id=call.id, tool_name="todo", status="ok"),
            Message(role="assistant", content=f"answer {number}"),
        ]
    return messages


async def brief(_: SummaryRequest) -> str:
    return "Twenty questions were asked."


ENGINES: list[Callable[[], ContextEngine]] = [
    *(partial(KeepLast, keep=n) for n in (1, 2, 3, 4, 7)),
    partial(ContextCompressor, brief, context_length=200_000),
    partial(ContextCompressor, brief),
]


@pytest.mark.parametrize("make", ENGINES)
async def test_a_context_engine_shortens_and_keeps_what_is_newest(make: Callable[[], ContextEngine]) -> None:
    before = [to_dict(message) for message in long_history()]
    given = copy.deepcopy(before)
    made = make().compress(given)
    kept = await made if inspect.isawaitable(made) else made
    assert given == before
    assert kept[-1] == before[-1]
    assert len(str(kept)) < len(str(before))
    messages = [from_dict(one) for one in kept]
    asked = {call.id for message in messages for call in message.tool_calls}
    assert asked == {message.tool_call_id for message in messages if message.role == "tool"}
    assert OUTCOME_UNKNOWN not in str([text_of(m.content) for unit in build_units(messages) for m in unit.messages])


@pytest.mark.parametrize("make", ENGINES[-3:-1])
def test_a_context_engine_never_finds_more_tokens_to_be_fewer(make: Callable[[], ContextEngine]) -> None:
    engine = make()
    engine.update_model("m", 200_000)
    answers = [engine.should_compress(tokens) for tokens in range(0, 240_000, 5_000)]
    assert answers == sorted(answers)
    assert (answers[0], answers[-1]) == (False, True)
