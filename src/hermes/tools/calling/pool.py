"""Daemon threads for blocking work: one that cannot be stopped is abandoned and counted; it never delays exit."""

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from time import perf_counter
from typing import Any, Literal, TypeVar, cast

from hermes.errors import ToolError

Result = TypeVar("Result")

LINGER_S = 100e-6
_REMEMBERED = 1024


class Quick:
    """Functions whose last run was over at once: their caller's loop may stand still for it, up to `LINGER_S`.

    Waking a loop costs more than many a function takes. Only a hint, by id: an id that another function inherits
    costs one short wait.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._ids: set[int] = set()

    def __contains__(self, function: object) -> bool:
        return id(function) in self._ids

    def learn(self, function: object, took_s: float) -> None:
        if took_s >= self._limit_s:
            self._ids.discard(id(function))
        elif id(function) not in self._ids:
            if len(self._ids) >= _REMEMBERED:
                self._ids.clear()
            self._ids.add(id(function))


class _PoolJob:
    __slots__ = ("args", "context", "ended", "error", "future", "kwargs", "outcome", "state", "took_s", "work")

    def __init__(self, work: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.work = work
        self.args = args
        self.kwargs = kwargs
        self.context = contextvars.copy_context()
        self.state: Literal["queued", "running", "done", "dropped", "abandoned"] = "queued"
        self.future: asyncio.Future[None] | None = None  # made when the caller has to wait
        self.ended = threading.Lock()  # held until the work has ended
        self.ended.acquire()
        self.outcome: Any = None
        self.error: BaseException | None = None
        self.took_s = 0.0

    def run(self) -> None:
        started = perf_counter()
        try:
            self.outcome = self.context.run(self.work, *self.args, **self.kwargs)
        except StopIteration as error:  # cannot leave a coroutine
            self.error = left_with(error)
        except Exception as error:  # noqa: BLE001 - carried to the coroutine that waits, where it is raised
            self.error = error
        except BaseException as error:  # noqa: BLE001 - would end the loop that waits, or pass for its cancellation
            self.error = left_with(error)
        self.took_s = perf_counter() - started

    def value(self) -> Any:
        if self.error is None:
            return self.outcome
        try:
            raise self.error
        finally:
            self.error = None  # else the error's own traceback would keep it alive


class DaemonPool:
    """Runs blocking functions for coroutines of any loop.

    Threads are made when none is idle, up to `size`; beyond it work waits its turn. A caller that is cancelled stops
    waiting at once: work that had not begun is dropped, and a thread in the middle of it is abandoned. An abandoned
    thread does not count against `size`, so it cannot starve the rest, and it ends after its work.
    """

    def __init__(self, size: int = 32, name: str = "hermes-tool") -> None:
        self._size = size
        self._name = name
        self._quick = Quick(50e-6)
        self._made = 0
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()  # guards the counters below and the state of every job
        self._queue: SimpleQueue[_PoolJob | None] = SimpleQueue()
        self._threads = 0
        self._free = 0  # threads without work minus jobs on their way to them
        self._abandoned = 0

    @property
    def abandoned(self) -> int:
        """Threads that still run work nobody waits for."""
        return self._abandoned

    @property
    def threads(self) -> int:
        """All threads of the pool, abandoned ones included."""
        return self._threads + self._abandoned

    async def run(self, function: Callable[..., Result], *args: Any, **kwargs: Any) -> Result:
        """`function(*args, **kwargs)` in a thread that carries the caller's context variables."""
        if os.getpid() != self._process:
            self._begin()  # a fork has none of the threads
        job = _PoolJob(function, args, kwargs)
        with self._lock:
            self._free -= 1
            if self._free < 0 and self._threads < self._size:
                self._start_thread()
        self._queue.put(job)
        try:
            await self._end_of(job)
        except asyncio.CancelledError:
            self._give_up(job)
            raise
        self._quick.learn(function, job.took_s)
        return cast("Result", job.value())

    async def _end_of(self, job: _PoolJob) -> None:
        if job.work not in self._quick or not job.ended.acquire(timeout=LINGER_S):
            with self._lock:
                if job.state != "done":
                    job.future = asyncio.get_running_loop().create_future()
        await (asyncio.sleep(0) if job.future is None else job.future)  # either way others get their turn

    def close(self) -> None:
        """Let threads end after what they are doing; nobody waits for them."""
        with self._lock:
            threads = self._threads
        for _ in range(threads):
            self._queue.put(None)

    def _start_thread(self) -> None:
        self._threads += 1
        self._free += 1
        self._made += 1
        threading.Thread(target=self._work, name=f"{self._name}-{self._made}", daemon=True).start()

    def _give_up(self, job: _PoolJob) -> None:
        with self._lock:
            if job.state == "queued":
                job.state = "dropped"
            elif job.state == "running":
                job.state = "abandoned"
                self._threads -= 1
                self._abandoned += 1
                if self._free < 0:  # others wait for the place this thread leaves
                    self._start_thread()

    def _work(self) -> None:
        while True:
            job = self._queue.get()
            if job is None:
                break
            with self._lock:
                wanted = job.state == "queued"
                if wanted:
                    job.state = "running"
            if wanted:
                job.run()
            with self._lock:
                if job.state == "abandoned":
                    self._abandoned -= 1
                    return
                job.state = "done"
                self._free += 1
                future = job.future
            job.ended.release()
            if future is not None:
                wake(future)
            del job, future  # an idle thread keeps nothing of its last work alive
        with self._lock:
            self._threads -= 1
            self._free -= 1


def left_with(error: BaseException) -> ToolError:
    """What is told of a function that tried to end more than itself."""
    return ToolError(f"the tool tried to leave with {type(error).__name__}: {error}")


def wake(future: "asyncio.Future[None]") -> None:
    """Set the future from any thread."""

    def set_result() -> None:
        if not future.done():
            future.set_result(None)

    try:
        future.get_loop().call_soon_threadsafe(set_result)
    except RuntimeError:  # the loop was closed meanwhile; nobody waits any more
        return
