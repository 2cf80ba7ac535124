"""The threads that read for event loops: they leave when idle, and never with work that was just handed in."""

import asyncio
import random
import sqlite3

import pytest

from hermes.state.sqlite import pool as pool_module
from hermes.state.sqlite.pool import ReadPool

IDLE_S = 0.0005


async def test_work_is_done_also_when_the_idle_threads_are_just_leaving(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "THREAD_IDLE_S", IDLE_S)
    monkeypatch.setattr(pool_module, "MAX_THREADS", 2)
    pool = ReadPool(lambda: sqlite3.connect(":memory:"), lambda: 0)
    chance = random.Random(7)

    async def ask(number: int) -> None:
        for _ in range(400):
            assert await asyncio.wait_for(pool.run(lambda: number), 10) == number
            await asyncio.sleep(chance.uniform(0, 2 * IDLE_S))

    async with asyncio.TaskGroup() as group:
        for number in range(6):
            group.create_task(ask(number))
    pool.close()
