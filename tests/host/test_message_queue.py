"""The line in memory and the line in the store, while both are looked at."""

import asyncio
from pathlib import Path
from typing import Any

from hermes.host.message_queue import MessageQueue
from hermes.state import SessionDB


async def test_what_is_said_while_the_line_is_read_is_not_lost(tmp_path: Path) -> None:
    read, go_on = asyncio.Event(), asyncio.Event()

    with SessionDB(tmp_path / "state.db") as db:

        async def in_thread(work: Any, *args: Any) -> Any:
            found = work(*args)
            if getattr(work, "__name__", "") == "read":  # it has been read; what was read arrives later
                read.set()
                await go_on.wait()
            return found

        queue = MessageQueue(db, "s", str, in_thread)
        async with asyncio.TaskGroup() as group:
            group.create_task(queue.refresh())
            await read.wait()
            await queue.add("said meanwhile")
            go_on.set()
        assert [one.text for one in queue.open_ones] == ["said meanwhile"]
        await queue.refresh()
        assert [one.text for one in queue.open_ones] == ["said meanwhile"]
