"""The sessions that are alive in this process, and how many of them may work at once."""

import asyncio
import logging
import sys
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from hermes.config.settings import Settings
from hermes.errors import SessionNotFound
from hermes.host.hosted_session import HostedSession, SessionStart
from hermes.runtime.setup.process import shared
from hermes.types import Content

if TYPE_CHECKING:
    from hermes.host.live_session import LiveSession
    from hermes.host.message_queue import WaitingMessage
    from hermes.state import SessionDB
    from hermes.state.message_line import BusyMode

SLEEPS_AFTER_S = 30.0
log = logging.getLogger(__name__)


class Sleeper(NamedTuple):
    """What a host knows of a session that sleeps; all else is in the store."""

    start: SessionStart
    busy_mode: "BusyMode"


class Host:
    """Opens sessions and owns their tasks: `async with Host() as host`. Leaving it closes what is still open.

    A session that nobody listens to and that has nothing to do falls asleep after a while: its agent is closed, its
    background processes stay, and a message to it (`submit`) wakes it.
    """

    def __init__(self, most_turns: int | None = None, sleeps_after_s: float = SLEEPS_AFTER_S) -> None:
        self.sessions: dict[str, LiveSession] = {}
        self._questions: list[HostedSession] = []
        self.asleep: dict[str, Sleeper] = {}
        self.sleeps_after_s = sleeps_after_s
        self.turns = asyncio.Semaphore(most_turns or sys.maxsize)  # who waited longest is next
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()
        self._errands = 0
        self._stores: dict[int, SessionDB] = {}
        self._moves: dict[str, str] = {}  # where sessions went on that were compressed here
        self._began: dict[str, str] = {}  # and what they were called before

    async def __aenter__(self) -> "Host":
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for session in [*self.sessions.values(), *self._questions]:
            await session.close()
        for task in self._tasks if error is not None else ():
            task.cancel()
        # Not told of the caller's own error: it goes on as it is, and not as one of a group.
        await self._group.__aexit__(None, None, None)

    def session(self, start: SessionStart, session_id: str | None = None, *, is_copy: bool = False) -> "LiveSession":
        """The live session of this id, or of a new one; one that is alive already is the same for everybody."""
        if session_id is not None and (known := self.sessions.get(session_id)) is not None:
            return known
        slept = self.asleep.pop(session_id, None) if session_id is not None else None
        from hermes.host.live_session import LiveSession  # one question does without

        made = LiveSession(self, slept.start if slept is not None else start, session_id, is_copy=is_copy)
        if slept is not None:
            made.busy_mode = slept.busy_mode
        self.sessions[made.session_id] = made
        return made

    def for_question(self, start: SessionStart, session_id: str | None = None) -> HostedSession:
        """A session that is asked one thing and then left: without a line, and known to nobody else."""
        made = HostedSession(self, start, session_id)
        self._questions.append(made)
        return made

    def know(self, session_id: str, start: SessionStart, busy_mode: "BusyMode" = "queue") -> None:
        """Take a session over as one that sleeps; a message wakes it."""
        if session_id not in self.sessions:
            self.asleep[session_id] = Sleeper(start, busy_mode)

    async def wake(self, session_id: str) -> "LiveSession":
        """The live session of one that is known here, awake; `SessionNotFound` for any other."""
        session_id = self.current_id(session_id)
        if (known := self.sessions.get(session_id)) is not None:
            await known.until_open()
            return known
        if (slept := self.asleep.get(session_id)) is None:
            raise SessionNotFound(f"there is no session {session_id!r} here; open it first")
        made = self.session(slept.start, session_id)
        await made.open()
        return made

    async def submit(
        self, session_id: str, content: Content, mode: "BusyMode | None" = None, key: str | None = None
    ) -> "WaitingMessage | None":
        """Send a message to a session that is known here, asleep or not; see `LiveSession.submit`."""
        session = await self.wake(session_id)
        return await session.submit(content, mode, key)

    async def submit_at(
        self, moment: float, session_id: str, content: Content, mode: "BusyMode | None" = None, key: str | None = None
    ) -> None:
        """`submit` at a moment of the clock; waiting for it keeps nobody awake. Cancel the task to call it off."""
        await asyncio.sleep(max(0.0, moment - time.time()))
        await self.submit(session_id, content, mode, key)

    def current_id(self, session_id: str) -> str:
        """The id under which a session goes on that had this one; the same for one that never moved."""
        while session_id in self._moves:
            session_id = self._moves[session_id]
        return session_id

    def first_id(self, session_id: str) -> str:
        """The id that a session had when this host came to know it."""
        while session_id in self._began:
            session_id = self._began[session_id]
        return session_id

    @property
    def working(self) -> int:
        """How many sessions work on something just now."""
        return sum(one.is_busy for one in self.sessions.values())

    @property
    def is_awake(self) -> bool:
        """Whether a session is awake, or something else goes on here that should come to its end."""
        return bool(self.sessions or self._questions or self._errands)

    @contextmanager
    def errand(self) -> Iterator[None]:
        """Work that may be no session's keeps the host awake."""
        self._errands += 1
        try:
            yield
        finally:
            self._errands -= 1

    async def put_to_sleep(self, session: "LiveSession") -> None:
        """Let go of all that a session holds in memory; what it started in the background goes on."""
        if session.is_at_rest:
            self.forget(session)  # before anything is awaited: who comes now wakes another in its place
            self.know(session.session_id, session.start, session.busy_mode)
            await session.close(keep_background=True)

    def begin(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run `work` as a task of this host. What it raises is logged, and costs no other session anything."""
        task = self._group.create_task(_guarded(work, name), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def db(self, settings: Settings) -> "SessionDB":
        """The sessions of a home, over the one store that its agents write through."""
        store = shared.store(settings)
        if (known := self._stores.get(id(store))) is None:
            from hermes.state import SessionDB  # one turn of a new session does without it

            known = self._stores[id(store)] = SessionDB(store=store)
        return known

    def moved(self, session: HostedSession, old: str) -> None:
        """The session goes on under another id."""
        if (found := self.sessions.get(old)) is not None and found is session:
            del self.sessions[old]
            self.sessions[session.session_id] = found
            self._moves[old], self._began[session.session_id] = session.session_id, old

    def forget(self, session: HostedSession) -> None:
        """The session is closed."""
        if self.sessions.get(session.session_id) is session:
            del self.sessions[session.session_id]
        if session in self._questions:
            self._questions.remove(session)


async def _guarded(work: Coroutine[Any, Any, None], name: str) -> None:
    try:
        await work
    except Exception:  # the border between sessions: a fault in one must not end the others
        log.exception("%s failed", name)
