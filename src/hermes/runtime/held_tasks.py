"""Work that outlives the turn it is done for, and ends with the agent: titles, reviews."""

import asyncio
from collections.abc import Coroutine
from typing import Any


class HeldTasks:
    """Tasks with an owner. None outlives `close`."""

    def __init__(self) -> None:
        self._held: set[asyncio.Task[None]] = set()  # the loop itself keeps only weak references

    def __bool__(self) -> bool:
        """Whether any is under way."""
        return bool(self._held)

    def begin(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run `work` beside whatever comes next; it tells its own failures."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._held.add(task)
        task.add_done_callback(self._held.discard)

    async def close(self, wait_s: float = 0.0) -> None:
        """Give what is under way so long to be done; then drop it."""
        here = [task for task in self._held if task.get_loop() is asyncio.get_running_loop()]
        if not here:
            return
        _, late = await asyncio.wait(here, timeout=wait_s)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)
