"""Daemon threads for blocking work: one that cannot be stopped is abandoned and counted; it never delays exit."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Literal, TypeVar, cast

from hermes.errors import ToolError

Result = TypeVar("Result")


class _Job:
    __slots__ = ("args", "context", "error", "future", "kwargs", "loop", "outcome", "state", "work")

    def __init__(self, work: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.work = work
        self.args = args
        self.kwargs = kwargs
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.context = contextvars.copy_context()
        self.state: Literal["queued", "running", "done", "dropped", "abandoned"] = "queued"
        self.outcome: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.outcome = self.context.run(self.work, *self.args, **self.kwargs)
        except (SystemExit, KeyboardInterrupt, StopIteration) as error:
            # These would end the loop that waits, or cannot be set on a future at all.
            self.error = ToolError(f"the tool tried to leave with {type(error).__name__}: {error}")
        except BaseException as error:  # noqa: BLE001 - carried to the coroutine that waits, where it is raised
            self.error = error

    def deliver(self) -> None:
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.outcome)


class DaemonPool:
    """Runs blocking functions for coroutines of any loop.

    Threads are made when none is idle, up to `size`; beyond it work waits its turn. A caller that is cancelled stops
    waiting at once: work that had not begun is dropped, and a thread in the middle of it is abandoned. An abandoned
    thread does not count against `size`, so it cannot starve the rest, and it ends after its work.
    """

    def __init__(self, size: int = 32, name: str = "hermes-tool") -> None:
        self._size = size
        self._name = name
        self._lock = threading.Lock()  # guards the counters below and the state of every job
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads = 0
        self._free = 0  # threads without work minus jobs on their way to them
        self._abandoned = 0
        self._made = 0

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
        job = _Job(function, args, kwargs)
        with self._lock:
            self._free -= 1
            if self._free < 0 and self._threads < self._size:
                self._start_thread()
        self._queue.put(job)
        try:
            return cast("Result", await job.future)
        except asyncio.CancelledError:
            self._give_up(job)
            raise

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

    def _give_up(self, job: _Job) -> None:
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
            _tell(job)
            del job  # an idle thread keeps nothing of its last work alive
        with self._lock:
            self._threads -= 1
            self._free -= 1


def _tell(job: _Job) -> None:
    try:
        job.loop.call_soon_threadsafe(job.deliver)
    except RuntimeError:  # the loop was closed meanwhile; nobody waits any more
        return
