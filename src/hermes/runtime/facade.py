"""Sync on top of async: one background loop for the process, and callbacks in the thread that is waiting."""

import asyncio
import atexit
import logging
import queue
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextvars import ContextVar
from typing import Any, TypeVar

from msgspec import Struct, field

from hermes.types import Event, ReasoningDelta, TextDelta

Result = TypeVar("Result")
QUEUE_EVENTS = 10_000
EXIT_S = 1.0  # for what is still running when the interpreter ends

log = logging.getLogger(__name__)


class BackgroundLoop:
    """The loop that sync callers share: started on first use, in a daemon thread, for the life of the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards _loop
        self._loop: asyncio.AbstractEventLoop | None = None

    def get(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._loop.is_closed():
                self._loop = asyncio.new_event_loop()
                thread = threading.Thread(target=self._loop.run_forever, name="hermes-loop", daemon=True)
                thread.start()
                atexit.register(_end, self._loop, thread)
            return self._loop

    def refuse_own_thread(self) -> None:
        """A sync call from the loop's own thread would wait for itself for ever."""
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            return
        if running is self._loop:
            raise RuntimeError("run_conversation was called on the kernel's own loop; await arun_conversation there")


def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    """Close what is open on `loop` as `asyncio.run` would; else libraries complain on stderr when it is taken apart."""
    if not thread.is_alive():  # in a fork of the process there is the loop, and no thread
        return
    ending = asyncio.run_coroutine_threadsafe(_close_all(loop), loop)
    try:
        ending.result(EXIT_S)
    except TimeoutError:
        log.warning("the background loop did not end within %s s", EXIT_S)


async def _close_all(loop: asyncio.AbstractEventLoop) -> None:
    running = asyncio.all_tasks() - {asyncio.current_task()}
    for task in running:
        task.cancel()
    if running:
        await asyncio.wait(running)
    await loop.shutdown_asyncgens()


background = BackgroundLoop()


class _Errand(Struct, frozen=True):
    """Something the caller's thread is to do, and where its outcome goes."""

    work: Callable[[], Any]
    outcome: "Future[Any]" = field(default_factory=Future)

    def run(self) -> None:
        if not self.outcome.set_running_or_notify_cancel():
            return  # nobody waits for it any more
        try:
            self.outcome.set_result(self.work())
        except Exception as error:  # noqa: BLE001 - carried to the coroutine that waits, where it is raised
            self.outcome.set_exception(error)


class CallerSink:
    """Carries events from the loop to the caller's thread through a bounded queue.

    When the caller is slower than the model, deltas are dropped rather than memory filled: they are provisional,
    and the stored message has the whole text. Other events are never dropped.
    """

    def __init__(self, deliver: Callable[[Event], None]) -> None:
        self._deliver = deliver
        self._events: queue.SimpleQueue[Event | _Errand | None] = queue.SimpleQueue()

    def emit(self, event: Event) -> None:
        if isinstance(event, TextDelta | ReasoningDelta) and self._events.qsize() >= QUEUE_EVENTS:
            return
        self._events.put(event)

    async def call(self, function: Callable[..., Result], *args: Any, **keywords: Any) -> Result:
        """What `function` returns, called in the caller's thread after the events so far.

        A cancellation stops the waiting at once. What had not begun is then never called, and what had may go on in
        the caller's thread, where nothing but its own end can stop it; its outcome goes nowhere.
        """
        errand = _Errand(lambda: function(*args, **keywords))
        self._events.put(errand)
        result: Result = await asyncio.wrap_future(errand.outcome)
        return result

    def close(self) -> None:
        self._events.put(None)

    def drain(self) -> None:
        """Deliver until `close`, in this thread."""
        while (event := self._events.get()) is not None:
            if isinstance(event, _Errand):
                event.run()
            else:
                self._deliver(event)


caller: ContextVar[CallerSink | None] = ContextVar("hermes_caller", default=None)  # who waits for the running turn


def run_sync(work: Coroutine[Any, Any, Result], sink: CallerSink, on_abort: Callable[[], None]) -> Result:
    """Run `work` on the background loop while this thread delivers its events; return what it returns.

    If Ctrl-C hits this thread, in a callback or between them, `on_abort` is called, `work` is seen to its end, and the
    exception goes on to the caller.
    """
    token = caller.set(sink)
    try:
        future = asyncio.run_coroutine_threadsafe(work, background.get())  # takes this context along
    finally:
        caller.reset(token)
    future.add_done_callback(lambda _: sink.close())
    try:
        sink.drain()
    except BaseException:
        on_abort()
        future.exception()
        raise
    return future.result()
