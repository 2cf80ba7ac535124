"""Blocking work in a thread of its own, for which nobody waits at the end of the process."""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


async def in_daemon_thread(work: Callable[[], Result], name: str) -> Result:
    """What `work` returns or raises. When the wait is cancelled, the thread is left to finish by itself."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Result] = loop.create_future()

    def settle(found: Result | None, error: Exception | None) -> None:
        if answer.done():  # cancelled meanwhile
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(found)  # type: ignore[arg-type]  # without an error there is a result

    def run() -> None:
        found: Result | None = None
        failed: Exception | None = None
        try:
            found = work()
        except Exception as error:  # noqa: BLE001 - the thread's border: raised again where it is awaited
            failed = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, found, failed)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await answer
