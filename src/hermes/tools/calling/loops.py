"""Event loops for sync callers: they live as long as the process, so what was made on one always finds it open."""

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Coroutine
from contextvars import ContextVar
from time import perf_counter
from typing import Any, Generic, Literal, TypeVar

from hermes.tools.calling.pool import LINGER_S, Quick, left_with, wake

Result = TypeVar("Result")

CALL_LIMIT_S = 300.0
PATIENCE_S = 0.5  # a loop that has not begun with a call by then is held up by another one, and is left to it

_depth: ContextVar[int] = ContextVar("hermes_loop_depth", default=0)
_lock = threading.Lock()  # guards _loops, and who begins with a call
_quick = Quick(500e-6)  # a hint: two loops take part, so this includes waking them
_loops: list[asyncio.AbstractEventLoop] = []  # a cache: one loop per depth of nesting, made when first needed
_held_up: list[asyncio.AbstractEventLoop] = []  # left to work that blocks them, until they move again


def run_sync(work: Coroutine[Any, Any, Result], timeout_s: float | None = CALL_LIMIT_S) -> Result:
    """Run `work` to its end from sync code, on any thread, also where another loop is running.

    Work that itself calls back into sync code that lands here goes one loop deeper, so nesting never waits for
    itself. Past `timeout_s` the coroutine is cancelled and `TimeoutError` is raised.
    """
    call = _Call(work)
    try:
        patience = PATIENCE_S if timeout_s is None else min(PATIENCE_S, timeout_s)
        if call.ended.acquire(timeout=patience):
            return call.value()
        call.move()
        if call.ended.acquire(timeout=-1 if timeout_s is None else timeout_s - patience):
            return call.value()
    except BaseException:
        call.cancel()  # Ctrl-C in the waiting thread reaches the coroutine
        raise
    call.cancel()
    raise TimeoutError(f"no result within {timeout_s:g} s; the call was cancelled")


async def run_on_tools_loop(work: Coroutine[Any, Any, Result], known_as: object) -> Result:
    """Run `work` on the tools' own loop and wait here without holding this loop up; `known_as` is what makes it.

    A cancelled caller cancels the work and does not wait for work that will not stop.
    """
    started = perf_counter()
    call = _Call(work)
    loop = asyncio.get_running_loop()
    if known_as not in _quick or not call.ended.acquire(timeout=LINGER_S):
        call.let_wait(loop)
    if call.waiting is None:
        await asyncio.sleep(0)
    else:
        timer = loop.call_later(PATIENCE_S, call.move)
        try:
            await call.waiting
        except asyncio.CancelledError:
            call.cancel()
            raise
        finally:
            timer.cancel()
    _quick.learn(known_as, perf_counter() - started)
    return call.value()


def loops_held_up() -> int:
    """How many loops are blocked by work that nobody can stop."""
    return len(_held_up)


def depth_here() -> int:
    """On which of the loops this context runs, counted from 1; 0 outside them."""
    return _depth.get()


class _Call(Generic[Result]):
    """Work on its way through the loop of its depth, with the caller's context variables."""

    def __init__(self, work: Coroutine[Any, Any, Result]) -> None:
        self._work = work
        self._depth = _depth.get()
        self._context = contextvars.copy_context()
        self._context.run(_depth.set, self._depth + 1)
        self._state: Literal["new", "begun", "ended", "dropped"] = "new"
        self._task: asyncio.Task[Result] | None = None
        self.ended = threading.Lock()  # held until the work has ended
        self.ended.acquire()
        self.waiting: asyncio.Future[None] | None = None
        self._loop = _loop(self._depth)
        self._loop.call_soon_threadsafe(self._begin, self._loop)

    def let_wait(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have a future of `loop` in `waiting`, unless the work has ended."""
        with _lock:
            if self._state != "ended":
                self.waiting = loop.create_future()

    def move(self) -> None:
        """When its loop has not even begun with it: leave that loop to what holds it up, and take a fresh one."""
        with _lock:
            if self._state != "new":
                return
            if _loops[self._depth] is self._loop:
                _loops[self._depth] = _new_loop(self._depth)
                _held_up.append(self._loop)
                self._loop.call_soon_threadsafe(_held_up.remove, self._loop)
            self._loop = _loops[self._depth]
        self._loop.call_soon_threadsafe(self._begin, self._loop)

    def cancel(self) -> None:
        """Nobody waits any more."""
        with _lock:
            is_new = self._state == "new"
            if is_new:
                self._state = "dropped"
        if is_new:
            self._work.close()
        else:
            self._loop.call_soon_threadsafe(self._stop)

    def value(self) -> Result:
        assert self._task is not None
        return self._task.result()

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        with _lock:
            if self._state != "new":
                return  # another loop has it, or nobody waits for it
            self._state, self._loop = "begun", loop
        self._task = loop.create_task(contained(self._work), context=self._context)
        self._task.add_done_callback(self._end)

    def _end(self, task: "asyncio.Task[Result]") -> None:
        task.cancelled() or task.exception()  # looked at, also when nobody waits any more
        with _lock:
            self._state = "ended"
            waiting = self.waiting
        self.ended.release()
        if waiting is not None:
            wake(waiting)

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()


async def contained(work: Awaitable[Result]) -> Result:
    """What `work` returns or raises; a `ToolError` for what would end the loop or pass for a cancellation."""
    try:
        return await work
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise left_with(error) from error
    except (Exception, GeneratorExit):
        raise
    except BaseException as error:
        raise left_with(error) from error


def _loop(depth: int) -> asyncio.AbstractEventLoop:
    with _lock:
        while len(_loops) <= depth:
            _loops.append(_new_loop(len(_loops)))
        return _loops[depth]


def _new_loop(depth: int) -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name=f"hermes-tools-loop-{depth}", daemon=True).start()
    return loop
