"""The scheduler against a model: however the calls of a wave interleave, the outcome is that of running in order."""

import asyncio
import json
import os
import random
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes.seams import Effects, Environment, ToolContext
from hermes.tools.calling.call_order import Waves
from hermes.tools.registry import tool_result
from hermes.tools.traits import BARRIER, Traits, conflict, overlap
from hermes.types import ToolCall, text_of
from tests.runtime.rooms import Folder, room, tool

FULL = os.environ.get("HERMES_TEST_FULL") == "1"

PATHS = ["file:/", "file:/a", "file:/a/b", "file:/a/c", "file:/ab", "file:/d/e", "todo:", "net:x"]
resources = st.frozensets(st.sampled_from(PATHS), max_size=2)
effects = st.one_of(
    st.builds(Effects, reads=resources, writes=resources), st.builds(Effects, reads=resources), st.just(BARRIER)
)
CELLS = ["file:/a/b/1", "file:/a/c/2", "file:/ab/3", "file:/d/e/4", "file:/z/5", "todo:list", "net:x/6"]

State = dict[str, int]


def waves_of(batch: list[Effects]) -> list[int]:
    """The wave of each call."""
    sorter = Waves()
    return [sorter.add(one) for one in batch]


def covered(names: frozenset[str]) -> list[str]:
    return [cell for cell in CELLS if any(overlap(name, cell) for name in names)]


def reads(one: Effects) -> list[str]:
    return CELLS if one.barrier else covered(one.reads | one.writes)


def writes(one: Effects) -> list[str]:
    return CELLS if one.barrier else covered(one.writes)


def look(number: int, one: Effects, state: State) -> int:
    return hash((number, tuple(state[cell] for cell in reads(one))))


def act(one: Effects, seen: int, state: State) -> None:
    for cell in writes(one):
        state[cell] = hash((seen, cell))


def in_order(batch: list[Effects]) -> tuple[State, list[int]]:
    state, seen = dict.fromkeys(CELLS, 0), []
    for number, one in enumerate(batch):
        seen.append(look(number, one, state))
        act(one, seen[-1], state)
    return state, seen


def in_waves(batch: list[Effects], chance: random.Random) -> tuple[State, list[int]]:
    """Every call is two steps, look and act, and the steps of a wave come in any order."""
    state, seen = dict.fromkeys(CELLS, 0), [0] * len(batch)
    waves = waves_of(batch)
    for turn in range(max(waves, default=-1) + 1):
        wave = [number for number, own in enumerate(waves) if own == turn]
        assert wave, "a wave is never empty"
        steps = [number for number in wave for _ in range(2)]
        chance.shuffle(steps)
        looked: set[int] = set()
        for number in steps:
            if number in looked:
                act(batch[number], seen[number], state)
            else:
                looked.add(number)
                seen[number] = look(number, batch[number], state)
    return state, seen


@settings(max_examples=5000 if FULL else 500, deadline=None)
@given(batch=st.lists(effects, max_size=7), seed=st.integers(0, 2**32))
def test_every_interleaving_of_the_waves_equals_the_sequential_run(batch: list[Effects], seed: int) -> None:
    assert in_waves(batch, random.Random(seed)) == in_order(batch)


@settings(max_examples=2000 if FULL else 200, deadline=None)
@given(batch=st.lists(effects, min_size=1, max_size=7))
def test_a_call_waits_only_for_calls_it_conflicts_with(batch: list[Effects]) -> None:
    waves = waves_of(batch)
    for number, wave in enumerate(waves):
        before = [waves[earlier] for earlier in range(number) if conflict(batch[earlier], batch[number])]
        assert wave == 1 + max(before, default=-1)


async def through_the_executor(batch: list[Effects], seed: int, folder: Path) -> tuple[State, list[int]]:
    """The same batch as real calls: async ones on the loop, sync ones in threads, each giving way in its middle."""
    state, chance = dict.fromkeys(CELLS, 0), random.Random(seed)
    pauses = [chance.randrange(4) for _ in batch]

    def effects_of(args: Mapping[str, Any], _ctx: ToolContext) -> Effects:
        return batch[int(args["n"])]

    async def on_the_loop(args: dict[str, Any], **_: object) -> str:
        seen = look(args["n"], batch[args["n"]], state)
        for _pause in range(pauses[args["n"]]):
            await asyncio.sleep(0)
        act(batch[args["n"]], seen, state)
        return tool_result(seen=seen)

    def in_a_thread(args: dict[str, Any], **_: object) -> str:
        seen = look(args["n"], batch[args["n"]], state)
        time.sleep(0)  # another thread's turn
        act(batch[args["n"]], seen, state)
        return tool_result(seen=seen)

    number = {"type": "object", "properties": {"n": {"type": "integer"}}}
    tools = [
        tool(name, handler, number, traits=Traits(effects=effects_of))
        for name, handler in (("loop", on_the_loop), ("thread", in_a_thread))
    ]
    asked = [
        ToolCall(str(place), chance.choice(("loop", "thread")), f'{{"n": {place}}}') for place in range(len(batch))
    ]
    async with room(folder, *tools) as it:
        results = await it.run(*asked)
    assert [result.call_id for result in results] == [call.id for call in asked]
    kept = [call_id for results_, _ in it.persisted for call_id in results_]
    assert len(kept) == len(set(kept)), "no result is kept twice"
    return state, [json.loads(text_of(result.content))["seen"] for result in results]


@settings(
    max_examples=1000 if FULL else 100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(batch=st.lists(effects, max_size=7), seed=st.integers(0, 2**32))
def test_the_executor_leaves_what_running_in_order_leaves(batch: list[Effects], seed: int, tmp_path: Path) -> None:
    assert asyncio.run(through_the_executor(batch, seed, tmp_path)) == in_order(batch)


async def _effects_asked(folder: Path, batch: list[Effects]) -> int:
    """How often the executor asks what the calls of a batch touch."""
    asked: list[int] = []

    def effects_of(args: Mapping[str, Any], _ctx: ToolContext) -> Effects:
        asked.append(args["n"])
        return batch[int(args["n"])]

    async def nothing(_args: dict[str, Any], **_: object) -> str:
        return tool_result(ok=True)

    number = {"type": "object", "properties": {"n": {"type": "integer"}}}
    async with room(folder, tool("touch", nothing, number, traits=Traits(effects=effects_of))) as it:
        await it.run(*[ToolCall(str(n), "touch", f'{{"n": {n}}}') for n in range(len(batch))])
    return len(asked)


async def test_each_call_is_asked_once_what_it_touches(tmp_path: Path) -> None:
    one_file = [Effects(writes=frozenset({"file:/a/b"}))] * 150
    assert await _effects_asked(tmp_path, one_file) == 150
    assert await _effects_asked(tmp_path, [BARRIER] * 150) == 149, "the last one alone need not be asked"
    assert await _effects_asked(tmp_path, [Effects(reads=frozenset({f"file:/{n}"})) for n in range(150)]) == 150


def test_the_work_of_sorting_calls_grows_with_their_number_and_not_with_its_square() -> None:
    def looked_up(count: int) -> int:
        names = [_Counted(f"file:/w/{number % 50}/{number}") for number in range(count)]
        waves_of([Effects(reads=frozenset(names[:1]), writes=frozenset({name})) for name in names])
        return sum(name.uses for name in names)

    assert looked_up(4_000) <= 4.2 * looked_up(1_000)


class _Counted(str):
    """A resource that counts how often it is taken apart."""

    uses = 0

    def partition(self, sep: str, /) -> tuple[str, str, str]:
        self.uses += 1
        return super().partition(sep)


async def test_what_a_call_left_behind_when_it_moved_the_folder_is_planned_anew(tmp_path: Path) -> None:
    """Paths of later calls start elsewhere then, and two that had nothing in common may be the same."""
    place = Folder("/here")
    order: list[str] = []

    def effects_of(args: Mapping[str, Any], ctx: ToolContext) -> Effects:
        written = frozenset({"file:" + os.path.join(ctx.environment.cwd, args["path"])})
        return Effects(writes=written, reads=frozenset({"file:/here/first"}))

    async def write(args: dict[str, Any], **_: object) -> str:
        if args["path"] == "first":
            place.cwd = "/moved"
        for _pause in range(0 if args["path"].startswith("/") else 5):
            await asyncio.sleep(0)
        order.append(args["path"])
        return tool_result(ok=True)

    properties = {"type": "object", "properties": {"path": {"type": "string"}}}
    write_tool = tool("write", write, properties, traits=Traits(effects=effects_of))
    asked = ["first", "same", "/moved/same"]  # the second is /here/same before the first has run
    async with room(tmp_path, write_tool, environment=cast("Environment", place)) as it:
        await it.run(*[ToolCall(path, "write", json.dumps({"path": path})) for path in asked])
    assert order == asked


def test_a_folder_covers_its_files_and_not_its_namesakes() -> None:
    assert overlap("file:/a", "file:/a/b")
    assert not overlap("file:/a", "file:/ab")
    assert not overlap("file:/a", "net:/a")
    assert overlap("file:/", "file:/x")


def test_two_reads_of_one_file_run_together_and_a_write_waits() -> None:
    read, write = Effects(reads=frozenset({"file:/a"})), Effects(writes=frozenset({"file:/a/b"}))
    assert waves_of([read, read, write, read]) == [0, 0, 1, 2]
    assert waves_of([write, BARRIER, read]) == [0, 1, 2]
    assert waves_of([BARRIER, read, BARRIER, BARRIER]) == [0, 1, 2, 3]
    assert waves_of([]) == []
