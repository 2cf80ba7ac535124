"""The line in memory and the line in the store, while both are looked at."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hermes.host.message_queue import MessageQueue
from hermes.state import SessionDB
from hermes.state.message_line import MessageLine
from hermes.state.sqlite.store import SqliteStore


async def test_what_is_said_while_the_line_is_read_is_not_lost(tmp_path: Path) -> None:
    read, go_on = asyncio.Event(), asyncio.Event()

    class SlowStore(SqliteStore):
        async def in_line(self, work: Callable[[MessageLine], Any]) -> Any:
            found = await super().in_line(work)
            if not read.is_set():  # it has been read; what was read arrives later
                read.set()
                await go_on.wait()
            return found

    with SessionDB(store=SlowStore(tmp_path / "state.db")) as db:
        queue = MessageQueue(db, "s", str)
        async with asyncio.TaskGroup() as group:
            group.create_task(queue.refresh())
            await read.wait()
            await queue.add("said meanwhile")
            go_on.set()
        assert [one.text for one in queue.open_ones] == ["said meanwhile"]
        await queue.refresh()
        assert [one.text for one in queue.open_ones] == ["said meanwhile"]
