"""The order among a script's calls: those that meet keep theirs, others never wait."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hermes.seams import Effects
from hermes.tools.calling.call_order import Lanes
from hermes.tools.traits import BARRIER, Traits, touches_nothing
from tests.tools.code_execution.rooms import room
from tests.tools.code_execution.test_scripts import SEARCH, fake


def writes(name: str) -> Effects:
    return Effects(writes=frozenset({f"file:/{name}"}))


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_conflicting_calls_keep_their_order_and_others_pass_them() -> None:
    lanes, log = Lanes(), []
    gates = {name: asyncio.Event() for name in ("a1", "a2", "b", "barrier", "c")}

    async def call(name: str, effects: Effects) -> None:
        async with lanes.entered(lambda: effects):
            log.append(name)
            await gates[name].wait()

    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        wanted = {"a1": writes("a"), "a2": writes("a"), "b": writes("b"), "barrier": BARRIER, "c": writes("c")}
        for name, effects in wanted.items():
            group.create_task(call(name, effects))
        await settled()
        assert log == ["a1", "b"]
        gates["b"].set()
        gates["a1"].set()
        await settled()
        assert log == ["a1", "b", "a2"]
        gates["a2"].set()
        await settled()
        assert log[3:] == ["barrier"]
        gates["barrier"].set()
        gates["c"].set()
    assert log[4:] == ["c"]


async def test_a_call_that_is_given_up_while_it_waits_holds_nobody() -> None:
    lanes = Lanes()
    first_may_go = asyncio.Event()
    done: list[str] = []

    async def call(name: str) -> None:
        async with lanes.entered(lambda: writes("x")):
            if name == "first":
                await first_may_go.wait()
            done.append(name)

    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        group.create_task(call("first"))
        await settled()
        second = group.create_task(call("second"))
        group.create_task(call("third"))
        await settled()
        second.cancel()
        await settled()
        first_may_go.set()
    assert done == ["first", "third"]


async def test_effects_are_worked_out_again_after_a_wait() -> None:
    lanes = Lanes()
    place = ["old"]
    seen: list[str] = []
    moved = asyncio.Event()

    async def mover() -> None:
        async with lanes.entered(lambda: BARRIER):
            await moved.wait()
            place[0] = "new"

    def effects() -> Effects:
        seen.append(place[0])
        return writes(place[0])

    async def writer() -> None:
        async with lanes.entered(effects):
            pass

    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        group.create_task(mover())
        await settled()
        group.create_task(writer())
        await settled()
        moved.set()
    assert seen[-1] == "new"


@pytest.mark.parametrize("threads", [1, 16])
async def test_many_calls_in_one_script_all_get_their_answers(tmp_path: Path, threads: int) -> None:
    count = 1000 if os.environ.get("HERMES_TEST_FULL") == "1" else 100

    async def handler(args: Mapping[str, Any], **_: object) -> str:
        return f'{{"n": "{args["query"]}"}}'

    code = f"""
from concurrent.futures import ThreadPoolExecutor
from hermes_tools import web_search
with ThreadPoolExecutor({threads}) as pool:
    answers = list(pool.map(lambda n: int(web_search(str(n))["n"]), range({count})))
print(answers == list(range({count})))
"""
    tool = fake("web_search", handler, SEARCH, Traits(effects=touches_nothing))
    async with room(tmp_path, tool, settings={"code_execution": {"max_tool_calls": count}}) as it:
        answer = await it.run(code)
    assert (answer["output"], answer["tool_calls_made"]) == ("True\n", count)
    assert len(it.journal()) == 2 * count
