"""Blocking work off the loop, in daemon threads: an executor's threads are joined at exit and can hang it."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

Result = TypeVar("Result")


class RunBlocking(Protocol):
    """How blocking work is run; the kernel's pool has this shape."""

    def __call__(self, function: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Awaitable[Result]: ...


async def in_daemon_thread(function: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Result:
    """Run `function` in a fresh daemon thread. A cancelled wait abandons the thread; its result is dropped."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Result] = loop.create_future()

    def settle(result: Result | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]  # None is a Result here whenever there is no error

    def work() -> None:
        result: Result | None = None
        problem: BaseException | None = None
        try:
            result = function(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - the waiting task raises it again
            problem = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, problem)

    threading.Thread(target=work, name="hermes-blocking", daemon=True).start()
    return await done
