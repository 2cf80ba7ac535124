"""The sessions that are alive in this process, and how many of them may work at once."""

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any

from hermes.config.settings import Settings
from hermes.host.live_session import LiveSession, SessionStart
from hermes.runtime.setup.process import shared
from hermes.state import SessionDB

MOST_TURNS = 64


class Host:
    """Opens sessions and owns their tasks: `async with Host() as host`. Leaving it closes what is still open."""

    def __init__(self, most_turns: int = MOST_TURNS) -> None:
        self.sessions: dict[str, LiveSession] = {}
        self.turns = asyncio.Semaphore(most_turns)  # who waited longest is next
        self._group = asyncio.TaskGroup()
        self._stores: dict[int, SessionDB] = {}

    async def __aenter__(self) -> "Host":
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for session in list(self.sessions.values()):
            await session.close()
        await self._group.__aexit__(kind, error, trace)

    def session(self, start: SessionStart, session_id: str | None = None, *, is_copy: bool = False) -> LiveSession:
        """The live session of this id, or of a new one; one that is alive already is the same for everybody."""
        if session_id is not None and (known := self.sessions.get(session_id)) is not None:
            return known
        made = LiveSession(self, start, session_id, is_copy=is_copy)
        self.sessions[made.session_id] = made
        return made

    def begin(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run `work` as a task of this host."""
        self._group.create_task(work, name=name)

    def db(self, settings: Settings) -> SessionDB:
        """The sessions of a home, over the one store that its agents write through."""
        store = shared.store(settings)
        if id(store) not in self._stores:
            self._stores[id(store)] = SessionDB(store=store)
        return self._stores[id(store)]

    def moved(self, session: LiveSession, old: str) -> None:
        """The session goes on under another id."""
        self.sessions.pop(old, None)
        self.sessions[session.session_id] = session

    def forget(self, session: LiveSession) -> None:
        """The session is closed."""
        if self.sessions.get(session.session_id) is session:
            del self.sessions[session.session_id]
