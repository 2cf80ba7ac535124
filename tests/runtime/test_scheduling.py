"""The scheduler against a model: however the calls of a wave interleave, the outcome is that of running in order."""

import asyncio
import json
import os
import random
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes.runtime.scheduling import next_wave
from hermes.seams import Effects, ToolContext
from hermes.tools.registry import tool_result
from hermes.tools.traits import BARRIER, Traits, conflict, overlap
from hermes.types import ToolCall, text_of
from tests.runtime.rooms import room, tool

FULL = os.environ.get("HERMES_TEST_FULL") == "1"

PATHS = ["file:/", "file:/a", "file:/a/b", "file:/a/c", "file:/ab", "file:/d/e", "todo:", "net:x"]
resources = st.frozensets(st.sampled_from(PATHS), max_size=2)
effects = st.one_of(
    st.builds(Effects, reads=resources, writes=resources), st.builds(Effects, reads=resources), st.just(BARRIER)
)
CELLS = ["file:/a/b/1", "file:/a/c/2", "file:/ab/3", "file:/d/e/4", "file:/z/5", "todo:list", "net:x/6"]

State = dict[str, int]


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
    pending = list(range(len(batch)))
    while pending:
        wave = [pending[place] for place in next_wave([batch[number] for number in pending])]
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
        pending = [number for number in pending if number not in wave]
    return state, seen


@settings(max_examples=5000 if FULL else 500, deadline=None)
@given(batch=st.lists(effects, max_size=7), seed=st.integers(0, 2**32))
def test_every_interleaving_of_the_waves_equals_the_sequential_run(batch: list[Effects], seed: int) -> None:
    assert in_waves(batch, random.Random(seed)) == in_order(batch)


@settings(max_examples=2000 if FULL else 200, deadline=None)
@given(batch=st.lists(effects, min_size=1, max_size=7))
def test_a_call_waits_only_for_calls_it_conflicts_with(batch: list[Effects]) -> None:
    pending = list(range(len(batch)))
    wave_of: dict[int, int] = {}
    while pending:
        ready = [pending[place] for place in next_wave([batch[number] for number in pending])]
        round_ = 1 + max(wave_of.values(), default=-1)
        wave_of |= dict.fromkeys(ready, round_)
        pending = [number for number in pending if number not in ready]
    for number, wave in wave_of.items():
        before = [wave_of[earlier] for earlier in range(number) if conflict(batch[earlier], batch[number])]
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
    kept = [call_id for wave in it.persisted for call_id in wave]
    assert len(kept) == len(set(kept)), "no result is kept twice"
    return state, [json.loads(text_of(result.content))["seen"] for result in results]


@settings(
    max_examples=1000 if FULL else 100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(batch=st.lists(effects, max_size=7), seed=st.integers(0, 2**32))
def test_the_executor_leaves_what_running_in_order_leaves(batch: list[Effects], seed: int, tmp_path: Path) -> None:
    assert asyncio.run(through_the_executor(batch, seed, tmp_path)) == in_order(batch)


def test_a_folder_covers_its_files_and_not_its_namesakes() -> None:
    assert overlap("file:/a", "file:/a/b")
    assert not overlap("file:/a", "file:/ab")
    assert not overlap("file:/a", "net:/a")
    assert overlap("file:/", "file:/x")


def test_two_reads_of_one_file_run_together_and_a_write_waits() -> None:
    read, write = Effects(reads=frozenset({"file:/a"})), Effects(writes=frozenset({"file:/a/b"}))
    assert next_wave([read, read, write, read]) == [0, 1]
    assert next_wave([write, BARRIER, read]) == [0]
    assert next_wave([BARRIER, read]) == [0]
    assert next_wave([]) == []
