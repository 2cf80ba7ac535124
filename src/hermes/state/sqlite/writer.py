"""Writing: one thread takes jobs from any thread or loop, several to a transaction.

Two switches of threads cost as much as a commit on a fast disk, and a busy loop makes the thread wait for the
interpreter at every statement. So callers write themselves, in the place of the thread, when nothing waits: a plain
thread always, a loop where commits are too quick to be noticed. What several tasks of a loop ask for in one round of
it goes into one transaction.

docs/state-writer.md draws the states of a commit, and says what is left of it at a kill, a full disk or a lost lease.
"""

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from hermes.errors import HermesError, StoreError

if TYPE_CHECKING:
    from hermes.state.sqlite.write_file import WriteFile

Answer = TypeVar("Answer")
Work = Callable[[sqlite3.Connection], Answer]

GROUP_LIMIT = 256
BETWEEN_IDLE_S = 0.002  # between two pieces of deferred work: room for whoever else waits for the file
BREATHS = 16  # commits on a loop before it gets a turn
RETRY_S, PATIENCE = 0.001, 20  # how a loop waits for the thread: to hand over a group costs it more than that
IDLE_S = 0.25  # quiet for this long: time for what can wait, such as indexing

_log = logging.getLogger(__name__)


class _Job(Generic[Answer]):
    """One all-or-nothing piece of writing. It may run twice, when a neighbour in its group fails."""

    __slots__ = ("alone", "answer", "done", "error", "is_known", "loop", "waiter", "work")

    def __init__(self, work: Work[Answer]) -> None:
        self.work = work
        self.alone = False
        self.answer: Answer | None = None
        self.error: BaseException | None = None
        self.is_known = False  # to the loop that waits
        self.loop: asyncio.AbstractEventLoop | None = None
        self.waiter: asyncio.Future[None] | None = None
        self.done: threading.Lock | None = None

    async def outcome(self, loop: asyncio.AbstractEventLoop) -> Answer:
        """The answer when it is durable. A cancellation meanwhile is raised when that is known, from the failure."""
        cancellation: asyncio.CancelledError | None = None
        while not self.is_known:
            self.waiter = loop.create_future()
            try:
                await self.waiter
            except asyncio.CancelledError as error:
                cancellation = error
        if cancellation is not None:
            raise cancellation from self.error
        return self.result()

    def result(self) -> Answer:
        if self.error is not None:
            raise self.error
        return self.answer  # type: ignore[return-value]  # set by the writer when there is no error


_NUDGE: _Job[None] = _Job(lambda _: None)  # never run: it tells the thread that deferred work is waiting


class Writer:
    """Hands jobs to its thread and waits for the commit that holds them."""

    def __init__(self, backend: "WriteFile") -> None:
        self._backend = backend
        self._jobs: SimpleQueue[_Job[Any] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()  # guards _thread and _closed
        self._closed = False
        self._turn = threading.Lock()  # held by whoever uses the backend
        self._gathered: dict[asyncio.AbstractEventLoop, list[_Job[Any]]] = {}  # each loop touches its own
        self._last_task = 0
        self._on_loop = 0
        self._nudged = False  # the thread knows already that work is waiting

    async def write(self, work: Work[Answer]) -> Answer:
        """Run `work` in a transaction; return when it is durable. The loop never waits for a slow disk or for others.

        A cancellation is held back until it is known whether the write was made; see `EventStore.commit`.
        """
        task = id(asyncio.current_task())
        is_quick = self._backend.commit_s < QUICK_S
        # Another task since the last time: more of them may be coming, and together they are cheaper.
        if task == self._last_task and is_quick:
            written = self._write_here(work, self._backend.try_begin)
            if written is not None:
                self._on_loop += 1
                if self._on_loop % BREATHS == 0:
                    await asyncio.sleep(0)
                return written[0]
        self._last_task = task
        job = _Job(work)
        job.loop = loop = asyncio.get_running_loop()
        if is_quick:
            self._gather(job, loop)
        else:
            self._put(job)
        return await job.outcome(loop)

    def write_sync(self, work: Work[Answer], *, alone: bool = False) -> Answer:
        """`write` for a plain thread; `alone` runs it outside a transaction."""
        if not alone:
            written = self._write_here(work, self._backend.begin)
            if written is not None:
                return written[0]
        job = _Job(work)
        job.alone = alone
        job.done = threading.Lock()
        job.done.acquire()
        self._put(job)
        job.done.acquire()
        return job.result()

    def look(self, read: Work[Answer]) -> tuple[Answer] | None:
        """Read with the writing connection, which has the newest pages at hand; None while that is in use."""
        if not self._turn.acquire(False):
            return None
        try:
            conn = self._backend.current()
            return None if conn is None else (read(conn),)
        finally:
            self._turn.release()

    def close(self) -> None:
        """Finish what was asked for, then end the thread and close its connection."""
        with self._starting:
            if self._closed:
                return
            self._closed = True
            thread = self._thread
            if thread is not None:
                self._jobs.put(None)
        if thread is None:
            with self._turn:
                self._backend.shut()
        elif thread is not threading.current_thread():
            thread.join()

    def start(self) -> None:
        """Start the thread, which does what is deferred as soon as nothing else is to do."""
        with self._starting:
            if self._closed:
                raise StoreError("the store is closed")
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="hermes-store-writer", daemon=True)
                self._thread.start()

    def _put(self, job: _Job[Any]) -> None:
        if self._thread is None or self._closed:
            self.start()
        self._jobs.put(job)

    def _run(self) -> None:
        ending = False
        wait_s: float | None = IDLE_S
        try:
            while not ending:
                group, ending = self._next_group(wait_s)
                nudged = _NUDGE in group
                if nudged:
                    self._nudged = False
                    group = [job for job in group if job is not _NUDGE]
                if group:
                    with self._turn:
                        self._write_group(group)
                    _acknowledge(group)
                if group or nudged:
                    group = []  # an idle thread must not keep what it wrote
                    wait_s = IDLE_S
                    self._guarded(self._backend.committed)
                elif not ending:
                    if self._guarded(self._backend.is_busy) is True:
                        wait_s = IDLE_S  # loops that write themselves are not quiet, although nothing comes here
                        continue
                    wait_s = BETWEEN_IDLE_S if self._guarded(self._backend.idle) is True else None
        finally:
            self._guarded(self._backend.shut)
            self._refuse_rest()

    def _next_group(self, wait_s: float | None) -> tuple[list[_Job[Any]], bool]:
        group: list[_Job[Any]] = []
        try:
            job = self._jobs.get(timeout=wait_s)
            while job is not None:
                group.append(job)
                if len(group) >= GROUP_LIMIT:
                    return group, False
                job = self._jobs.get_nowait()
        except Empty:
            return group, False
        return group, True

    def _gather(self, job: _Job[Any], loop: asyncio.AbstractEventLoop) -> None:
        """Write `job` at the end of this round of the loop, with whatever else is asked for in it."""
        group = self._gathered.get(loop)
        if group is None:
            self._gathered[loop] = [job]
            loop.call_soon(self._write_gathered, loop, PATIENCE)
        else:
            group.append(job)

    def _write_gathered(self, loop: asyncio.AbstractEventLoop, patience: int) -> None:
        group = self._gathered[loop]
        try:
            written = self._write_here(lambda conn: [job.work(conn) for job in group], self._backend.try_begin)
        except Exception as error:  # noqa: BLE001 - nothing of it was written; the thread tells whose it was
            _log.debug("%d writes are tried one by one: %s", len(group), error)
            written, patience = None, 0
        if written is None and patience and self._is_at_work():
            loop.call_later(RETRY_S, self._write_gathered, loop, patience - 1)
            return
        del self._gathered[loop]
        if written is None:
            self._hand_over(group)
            return
        for job, answer in zip(group, written[0], strict=True):
            job.answer = answer
        _wake(group)

    def _is_at_work(self) -> bool:
        """Whether our own thread uses the file just now, and will soon be done; others may hold it for long."""
        return self._turn.locked() or not self._jobs.empty()

    def _hand_over(self, group: list[_Job[Any]]) -> None:
        for job in group:
            try:
                self._put(job)
            except StoreError as error:
                job.error = error
                _acknowledge([job])

    def _write_here(self, work: Work[Answer], begin: Callable[[], sqlite3.Connection | None]) -> tuple[Answer] | None:
        """Write in this thread if nothing else is going on; the answer, or None when it was not done."""
        turn, backend = self._turn, self._backend
        if not turn.acquire(False):
            return None
        try:
            if self._closed or not self._jobs.empty():
                return None
            conn = begin()
            if conn is None:
                return None
            try:
                answer = work(conn)
            except BaseException:
                backend.rollback()
                raise
            wanted = backend.commit()
        except sqlite3.Error as error:
            raise _explained(error) from error
        finally:
            turn.release()
        if wanted and not self._nudged:
            self._nudged = True
            self._put(_NUDGE)
        return (answer,)

    def _write_group(self, group: list[_Job[Any]]) -> None:
        alone = [job for job in group if job.alone]
        for job in alone:
            self._run_alone(job)
        if alone:
            group = [job for job in group if not job.alone]
        if not group:
            return
        try:
            self._transaction(group)
        except Exception as error:  # noqa: BLE001 - each waiter must get an answer; a lone job gets this very error
            if len(group) == 1:
                group[0].error = _as_store_error(error)
                return
            for job in group:
                self._write_group([job])

    def _run_alone(self, job: _Job[Any]) -> None:
        try:
            job.answer = self._backend.alone(job.work)
        except Exception as error:  # noqa: BLE001 - handed to the waiter, who must get an answer
            job.error = _as_store_error(error)

    def _transaction(self, group: list[_Job[Any]]) -> None:
        conn = self._backend.begin()
        try:
            for job in group:
                job.answer = job.work(conn)
        except BaseException:
            self._backend.rollback()
            raise
        self._backend.commit(by_thread=True)

    def _guarded(self, step: Callable[[], object]) -> object:
        try:
            with self._turn:
                return step()
        except Exception:  # noqa: BLE001 - the writer's border: deferred work must not end the thread that all sessions need
            _log.exception("deferred work of the store failed")
            return None

    def _refuse_rest(self) -> None:
        rest: list[_Job[Any]] = []
        while not self._jobs.empty():
            job = self._jobs.get_nowait()
            if job is not None:
                job.error = StoreError("the store is closed")
                rest.append(job)
        _acknowledge(rest)


def _acknowledge(group: list[_Job[Any]]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[_Job[Any]]] = {}
    for job in group:
        if job.done is not None:
            job.done.release()
        elif job.loop is not None:
            by_loop.setdefault(job.loop, []).append(job)
    for loop, jobs in by_loop.items():
        try:
            loop.call_soon_threadsafe(_wake, jobs)
        except RuntimeError:  # the loop was closed while it waited: nobody is left to tell
            _log.debug("a loop closed before its commit was acknowledged")


def _wake(jobs: list[_Job[Any]]) -> None:
    for job in jobs:
        job.is_known = True
        if job.waiter is not None and not job.waiter.done():
            job.waiter.set_result(None)


def _as_store_error(error: Exception) -> BaseException:
    if isinstance(error, HermesError | ValueError):
        return error
    if isinstance(error, sqlite3.Error):
        return _explained(error)
    return error


def _explained(error: sqlite3.Error) -> StoreError:
    text = str(error)
    hints = {
        "full": "free some space; nothing of this write was kept",
        "readonly": "the file or its folder cannot be written",
        "malformed": "run `hermes sessions repair`",
        "not a database": "run `hermes sessions repair`",
        "locked": "another program holds the file",
    }
    hint = next((advice for word, advice in hints.items() if word in text), "")
    failure = StoreError(f"the write failed: {text}" + (f" ({hint})" if hint else ""))
    failure.__cause__ = error
    return failure


QUICK_S = 0.002  # commits that take less may run on an event loop: a person who types does not feel them
SLOWEST_S = 2 * QUICK_S  # what the slowest one counts: a single hiccup of a quick disk is none of its habits
_WEIGHT = 0.25


def pace(estimate_s: float, took_s: float, *, by_thread: bool) -> float:
    """The estimate after one more commit.

    The writing thread waits for the disk, and then for the interpreter, which a busy loop lets go only every 5 ms. So
    its commits are a bound: they can show that the disk is quicker than was thought, never that it is slower.
    """
    if by_thread and took_s >= estimate_s:
        return estimate_s
    return (1 - _WEIGHT) * estimate_s + _WEIGHT * min(took_s, SLOWEST_S)
