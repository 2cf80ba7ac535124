"""Event loops for sync callers: they live as long as the process, so what was made on one always finds it open."""

import asyncio
import contextvars
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from contextvars import ContextVar
from time import perf_counter
from typing import Any, TypeVar

from hermes.errors import ToolError
from hermes.tools.pool import LINGER_S, Quick

Result = TypeVar("Result")

CALL_LIMIT_S = 300.0
_STOP_S = 1.0

_depth: ContextVar[int] = ContextVar("hermes_loop_depth", default=0)
_lock = threading.Lock()  # guards _loops
_quick = Quick(500e-6)  # a hint: two loops take part, so this includes waking them
_loops: list[asyncio.AbstractEventLoop] = []  # a cache: one loop per depth of nesting, made when first needed


def run_sync(work: Coroutine[Any, Any, Result], timeout_s: float | None = CALL_LIMIT_S) -> Result:
    """Run `work` to its end from sync code, on any thread, also where another loop is running.

    Work that itself calls back into sync code that lands here goes one loop deeper, so nesting never waits for
    itself. Past `timeout_s` the coroutine is cancelled and `TimeoutError` is raised.
    """
    future = submit(work)
    try:
        return future.result(timeout_s)
    except TimeoutError:
        if future.done():  # the work's own TimeoutError
            raise
        future.cancel()
        raise TimeoutError(f"no result within {timeout_s:g} s; the call was cancelled") from None
    except BaseException:
        future.cancel()  # Ctrl-C in the waiting thread reaches the coroutine
        raise


async def run_on_tools_loop(work: Coroutine[Any, Any, Result], known_as: object) -> Result:
    """Run `work` on the tools' own loop and wait here without holding this loop up; `known_as` is what makes it.

    A cancelled caller cancels the work and does not wait for work that will not stop.
    """
    started = perf_counter()
    outcome = submit(work)
    if known_as in _quick:
        with suppress(TimeoutError, CancelledError):
            outcome.exception(LINGER_S)
    if outcome.done():
        await asyncio.sleep(0)
    else:
        await asyncio.wrap_future(outcome)
    _quick.learn(known_as, perf_counter() - started)
    return outcome.result()


def submit(work: Coroutine[Any, Any, Result]) -> "Future[Result]":
    """Start `work` on the loop of the current depth, with the caller's context variables."""
    depth = _depth.get()
    loop = _loop(depth)
    context = contextvars.copy_context()
    context.run(_depth.set, depth + 1)
    outcome: Future[Result] = Future()

    def start() -> None:
        task = loop.create_task(_contained(work), context=context)
        running.add(task)
        task.add_done_callback(lambda done: _finish(done, outcome))

    running: set[asyncio.Task[Result]] = set()  # the loop itself keeps only weak references

    def stop(done: "Future[Result]") -> None:
        if done.cancelled():
            loop.call_soon_threadsafe(lambda: [task.cancel() for task in running])

    outcome.add_done_callback(stop)
    loop.call_soon_threadsafe(start)
    return outcome


def depth_here() -> int:
    """On which of the loops this context runs, counted from 1; 0 outside them."""
    return _depth.get()


async def _contained(work: Coroutine[Any, Any, Result]) -> Result:
    try:
        return await work
    except (SystemExit, KeyboardInterrupt) as error:  # either would end the loop for everybody
        raise ToolError(f"the tool tried to leave with {type(error).__name__}: {error}") from error


def _finish(task: "asyncio.Task[Result]", outcome: "Future[Result]") -> None:
    if task.cancelled():
        if not outcome.done():
            outcome.cancel()
            outcome.set_running_or_notify_cancel()
        return
    error = task.exception()
    if not outcome.set_running_or_notify_cancel():
        return  # nobody waits any more
    if error is not None:
        outcome.set_exception(error)
    else:
        outcome.set_result(task.result())


def _loop(depth: int) -> asyncio.AbstractEventLoop:
    with _lock:
        while len(_loops) <= depth:
            loop = asyncio.new_event_loop()
            name = f"hermes-tools-loop-{len(_loops)}"
            threading.Thread(target=loop.run_forever, name=name, daemon=True).start()
            _loops.append(loop)
        return _loops[depth]
