"""Read connections, and the daemon threads on which a loop's reads run."""

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from hermes.errors import StoreError
from hermes.state.sqlite.connection import is_damage

Answer = TypeVar("Answer")

MAX_THREADS = 4
THREAD_IDLE_S = 5.0
MAX_KEPT = 4

_log = logging.getLogger(__name__)


class ReadPool:
    """Hands out read connections; runs work of event loops on a few daemon threads, which end when idle."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], file: Callable[[], int]) -> None:
        self._connect = connect
        self._file = file  # which file has the name now; a kept connection to another one is not used again
        self._kept: list[tuple[int, sqlite3.Connection]] = []
        self._lock = threading.Lock()  # guards _kept, _threads, _free, _closed
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads = 0
        self._free = 0  # threads without work minus work on its way to them
        self._closed = False

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """A read connection for this thread alone, for the length of the block."""
        file = self._file()
        conn = self._take(file)
        try:
            yield conn
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise _explained(error) from error
        finally:
            self._give_back(file, conn)

    async def run(self, work: Callable[[], Answer]) -> Answer:
        """Run `work` on a thread of the pool; the loop goes on meanwhile."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[Answer] = loop.create_future()

        def job() -> None:
            answer, failure = None, None
            try:
                answer = work()
            except BaseException as error:  # noqa: BLE001 - handed to the waiter, who must get an answer
                failure = error
            try:
                loop.call_soon_threadsafe(_settle, waiter, answer, failure)
            except RuntimeError:  # the loop was closed while it waited
                _log.debug("a loop closed before its read ended")

        self._submit(job)
        return await waiter

    def close(self) -> None:
        """Close the kept connections; one in use is closed when it is given back."""
        with self._lock:
            self._closed = True
            kept, self._kept = self._kept, []
            threads = self._threads
        for _ in range(threads):
            self._work.put(None)
        for _, conn in kept:
            conn.close()

    @property
    def is_closed(self) -> bool:
        return self._closed

    def _take(self, file: int) -> sqlite3.Connection:
        while True:
            with self._lock:
                if self._closed:
                    raise StoreError("the store is closed")
                kept = self._kept.pop() if self._kept else None
            if kept is None:
                return self._connect()
            if kept[0] == file:
                return kept[1]
            kept[1].close()

    def _give_back(self, file: int, conn: sqlite3.Connection) -> None:
        with self._lock:
            keep = not self._closed and len(self._kept) < MAX_KEPT and not conn.in_transaction
            if keep:
                self._kept.append((file, conn))
        if not keep:
            conn.close()

    def _submit(self, job: Callable[[], None]) -> None:
        with self._lock:
            if self._closed:
                raise StoreError("the store is closed")
            self._free -= 1
            start = self._free < 0 and self._threads < MAX_THREADS
            if start:
                self._threads += 1
                self._free += 1
            self._work.put(job)  # under the lock, or a thread that leaves at this moment would not see it
        if start:  # not handed the job: a thread keeps its arguments, and with them the first transcript it read
            threading.Thread(target=self._serve, name="hermes-store-reader", daemon=True).start()

    def _serve(self) -> None:
        while (job := self._next()) is not None:
            job()
            del job  # an idle thread must not keep a transcript alive
            with self._lock:
                self._free += 1

    def _next(self) -> Callable[[], None] | None:
        """The next piece of work; with None the thread no longer counts."""
        while True:
            with suppress(Empty):
                if (job := self._work.get(timeout=THREAD_IDLE_S)) is not None:
                    return job
            with self._lock:
                if self._closed or self._work.empty():  # else something arrived in the very moment of leaving
                    self._threads -= 1
                    self._free -= 1
                    return None


def _settle(waiter: asyncio.Future[Any], answer: Any, failure: BaseException | None) -> None:
    if waiter.done():
        return
    if failure is not None:
        waiter.set_exception(failure)
    else:
        waiter.set_result(answer)


def _explained(error: Exception) -> StoreError:
    hint = " (run `hermes sessions repair`)" if is_damage(error) else ""
    return StoreError(f"the read failed: {error}{hint}")
