"""One timer for the calls of a server: each is cancelled at its own limit, and nothing of that is left behind."""

import asyncio
from typing import Any

import pytest

from hermes.tools.mcp.call_clock import CallClock, CallUnderWay

NO_CTX: Any = None  # the clock does not look at it


async def waits(clock: CallClock, seen: list[CallUnderWay], *, swallows: bool = False) -> str:
    call = clock.begin(NO_CTX, asyncio.get_running_loop())
    seen.append(call)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        if swallows:
            return "swallowed"
        if not call.ends_late:
            raise
        return "late"
    finally:
        clock.end(call)
    raise AssertionError("unreachable")


@pytest.mark.parametrize("swallows", [False, True])
async def test_a_late_call_leaves_its_task_as_it_was(swallows: bool) -> None:
    clock, seen = CallClock(0.01), list[CallUnderWay]()
    task = asyncio.current_task()
    assert task is not None
    async with asyncio.timeout(20):
        assert await waits(clock, seen, swallows=swallows) == ("swallowed" if swallows else "late")
    assert task.cancelling() == 0
    assert clock.calls == []


async def test_who_is_stopped_is_stopped_also_when_late() -> None:
    clock, seen = CallClock(0.01), list[CallUnderWay]()
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        task = group.create_task(waits(clock, seen))
        while not seen or not seen[0].is_late:
            await asyncio.sleep(0)
            if seen and seen[0].is_late:
                task.cancel()  # a stop of the turn, in the same moment
    assert task.cancelled()


async def test_time_stands_still_while_a_person_is_asked() -> None:
    clock, seen = CallClock(0.05), list[CallUnderWay]()
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        task = group.create_task(waits(clock, seen))
        await asyncio.sleep(0)  # it begins
        clock.pause(seen[0])
        rung = asyncio.Event()
        loop.call_later(0.1, rung.set)  # after the timer of the call
        await rung.wait()
        assert not task.done()
        clock.resume(seen[0])
        assert seen[0].deadline > loop.time()
    assert task.result() == "late"
