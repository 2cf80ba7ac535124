"""Work whose first step is made at once goes on as if it had been a task from the beginning."""

import asyncio
from typing import Any

import pytest

from hermes.models.http.request import _begun


async def test_the_first_step_is_made_at_once() -> None:
    steps: list[str] = []

    async def work() -> None:
        steps.append("begun")

    rest = _begun(work())
    assert steps == ["begun"]
    await rest


async def test_the_rest_waits_for_what_the_work_waits_for() -> None:
    gate: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    steps: list[str] = []

    async def work() -> None:
        steps.append(await gate)
        await asyncio.sleep(0)
        steps.append("end")

    task = asyncio.create_task(_begun(work()))
    await asyncio.sleep(0)
    assert steps == []
    gate.set_result("middle")
    await task
    assert steps == ["middle", "end"]


async def test_a_cancellation_reaches_the_work() -> None:
    steps: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            steps.append("cleaned up")
            raise

    task = asyncio.create_task(_begun(work()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert steps == ["cleaned up"]


async def test_what_fails_later_fails_the_task() -> None:
    async def work() -> Any:
        await asyncio.sleep(0)
        raise OSError("gone")

    task = asyncio.create_task(_begun(work()))
    with pytest.raises(OSError, match="gone"):
        await task
