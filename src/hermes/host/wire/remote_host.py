"""The sessions of a server, for a screen: one connection, made again whenever it is lost."""

import asyncio
import logging
import os
from collections.abc import Coroutine
from types import TracebackType
from typing import Any

from hermes.config.settings import Settings
from hermes.errors import UserError
from hermes.host.events import TERMINAL
from hermes.host.host import Host
from hermes.host.hosted_session import SessionStart
from hermes.host.installation import Installation
from hermes.host.wire.connection import ServerConnection, ServerGone, connected
from hermes.host.wire.frames import WireEvent
from hermes.host.wire.remote_session import RemoteSession
from hermes.state import SessionDB

AGAIN_S = 0.2
log = logging.getLogger(__name__)


class RemoteHost:
    """`Opener` over the server of a home, which is started when none runs. `async with RemoteHost(...) as host`."""

    def __init__(self, installation: Installation, cwd: str, *, is_read_only: bool = False) -> None:
        self._installation = installation
        self._cwd = cwd
        self.name = f"{TERMINAL} {os.getpid()}"  # as others are told who has answered
        self._is_read_only = is_read_only
        self._local = Host()  # owns the tasks, and reads the store
        self._lock = asyncio.Lock()  # guards `current`: one looks for the server, the others wait
        self._attached: list[RemoteSession] = []
        self._routes: dict[str, RemoteSession] = {}
        self._early: dict[str, list[WireEvent]] = {}
        self._expected = 0
        self._is_closing = False
        self.current: ServerConnection | None = None
        self.failure = asyncio.Event()
        self.why = ""

    async def __aenter__(self) -> "RemoteHost":
        await self._local.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closing = True
        self.failure.set()  # whoever waits for one need not wait any longer
        if self.current is not None:
            self.current.close()
        await self._local.__aexit__(kind, error, trace)

    def session(self, start: SessionStart, session_id: str | None = None, *, is_copy: bool = False) -> RemoteSession:
        return RemoteSession(self, start, session_id, is_read_only=self._is_read_only)

    def begin(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self._local.begin(work, name)

    def db(self, settings: Settings) -> SessionDB:
        return self._local.db(settings)

    def expect(self, session: RemoteSession) -> None:
        """It is about to be attached; what the server tells before it answers is kept until then."""
        self._routes = {known: one for known, one in self._routes.items() if one is not session}
        if session not in self._attached:
            self._attached.append(session)
        self._expected += 1

    def attached(self, live_id: str, session: RemoteSession) -> None:
        """It is known now under this id; what came early is told."""
        self._routes[live_id] = session
        for event in self._early.pop(live_id, ()):
            session.heard(event)

    def settled(self) -> None:
        """An attempt to attach is over."""
        self._expected -= 1
        if not self._expected:
            self._early.clear()

    def left(self, session: RemoteSession) -> None:
        self._routes = {known: one for known, one in self._routes.items() if one is not session}
        if session in self._attached:
            self._attached.remove(session)

    async def connection(self) -> ServerConnection:
        """A connection that works; sessions that were attached before are attached again."""
        async with self._lock:
            while self.current is None or self.current.is_gone.is_set():
                try:
                    self.current = await self._made()
                except (ServerGone, OSError):
                    await asyncio.sleep(AGAIN_S)
            return self.current

    async def lost(self, connection: ServerConnection) -> None:
        """This one has failed: whoever asks next gets another."""
        connection.close()
        await asyncio.sleep(AGAIN_S)

    async def _made(self) -> ServerConnection:
        made = await connected(self._installation)
        made.hears = self._hears
        self.begin(self._listen(made), "connection")
        try:
            await made.hello(self.name, self._installation.environ, self._cwd)
            for session in list(self._attached):
                await session.attach(made)
        except BaseException:
            made.close()
            raise
        return made

    async def _listen(self, connection: ServerConnection) -> None:
        try:
            await connection.listen()
        except Exception:  # the border to a screen: one that cannot show an event still finds the way back
            log.exception("an event could not be shown")
        if self._is_closing or connection is not self.current:
            return
        for session in self._attached:
            session.lost()
        try:
            await self.connection()
        except UserError as error:  # another version, or no server comes up
            self.why = str(error)
            self.failure.set()

    def _hears(self, event: WireEvent) -> None:
        if (session := self._routes.get(event.session_id)) is not None:
            session.heard(event)
        elif event.session_id and self._expected:
            self._early.setdefault(event.session_id, []).append(event)
