"""The server of a home: one host, its clients, and when it ends."""

import asyncio
import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from hermes import __version__
from hermes.config.sections.top import Section as Top
from hermes.host.agent_settings import AgentSettings
from hermes.host.host import SLEEPS_AFTER_S, Host
from hermes.host.hosted_session import SessionStart
from hermes.host.installation import Installation
from hermes.host.service import SERVICES, HostService, ServiceContext
from hermes.runtime.setup.process import shared
from hermes.surfaces.serve import session_facts
from hermes.surfaces.serve.session_book import SessionBook
from hermes.types import JsonObject

if TYPE_CHECKING:
    from hermes.host.live_session import LiveSession
    from hermes.surfaces.serve.client import Client

IDLE_S = 15 * 60.0
SOURCE = "tui"
# What a session has from the client that made it; all else is the server's own.
CLIENT_VARIABLES = ("PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "TERM", "COLORTERM", "LANG", "LANGUAGE", "TZ")
log = logging.getLogger(__name__)


class SessionServer:
    """`async with SessionServer(installation) as server`; `server.ended` is set when nothing is left to do.

    `stays`: it does not end by itself.
    """

    def __init__(
        self,
        installation: Installation,
        *,
        stays: bool = False,
        idle_s: float = IDLE_S,
        sleeps_s: float = SLEEPS_AFTER_S,
    ) -> None:
        self.installation = installation
        self.settings = installation.settings()
        self.host = Host(self.settings.of(Top).max_concurrent_sessions, sleeps_s)
        self.book = SessionBook(self.host)
        self.clients: set[Client] = set()
        self.since = time.time()
        self.cwd = str(Path.cwd())
        self.ended = asyncio.Event()
        self._stays = stays
        self._idle_s = idle_s
        self._services: list[tuple[str, HostService]] = []
        self._group = asyncio.TaskGroup()
        self._tasks: list[asyncio.Task[None]] = []
        self._tools: dict[tuple[str, str], dict[str, list[str]]] = {}
        self._quiet_since = time.monotonic()

    async def __aenter__(self) -> "SessionServer":
        await self.host.__aenter__()
        await self._group.__aenter__()
        for name in SERVICES.names():
            service = SERVICES.load(name)
            if service.is_wanted(self.settings):
                self._services.append((name, service))
                self._tasks.append(self._group.create_task(self._serve(name, service), name=name))
        self._stays = self._stays or any(one.keeps_server(self.settings) for _, one in self._services)
        if not self._stays:
            self._tasks.append(self._group.create_task(self._end_when_idle(), name="idle"))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await self._group.__aexit__(None, None, None)
        await self.host.__aexit__(kind, error, trace)

    def start_for(self, client: "Client | None" = None, cwd: str = "", source: str = SOURCE) -> SessionStart:
        """What a session of this client is opened with: its folder, and the variables that are the client's."""
        environ = self.environ_for(client.environ if client is not None else {})
        settings = Installation(self.installation.home, environ).settings()
        folder = cwd or (client.cwd if client is not None else "") or self.cwd
        return SessionStart(
            settings=settings,
            asked=AgentSettings(source=source),
            folder=folder,
            launched_in=folder,
            is_reached_later=True,
        )

    def environ_for(self, given: Mapping[str, str]) -> dict[str, str]:
        """The server's variables, those of a client's terminal replaced by what the client has."""
        own = dict(self.installation.environ)
        if not given:
            return own
        kept = {name: value for name, value in own.items() if not is_client_variable(name)}
        return kept | {name: value for name, value in given.items() if is_client_variable(name)}

    async def full_info(self, live: "LiveSession") -> JsonObject:
        """`session.info`, with the tools by toolset; they are looked up once for each folder."""
        key = (live.cwd, live.asked.source)
        if key not in self._tools:
            self._tools[key] = await live.in_thread(
                session_facts.tools_by_set, live.settings, live.cwd, live.asked.source
            )
        return {**session_facts.info(live), "tools": self._tools[key]}

    def refresh(self, live: "LiveSession") -> None:
        """Tell every screen how the session stands: its line, its figures."""
        live_id = self.book.id_of(live)
        for client in self.clients:
            client.refresh(live_id)

    def watchers(self, live: "LiveSession") -> int:
        """How many clients see a session."""
        live_id = self.book.id_of_stored(live.session_id)
        return sum(live_id in client.watches for client in self.clients)

    async def in_thread(self, work: Any, *args: Any) -> Any:
        """Blocking work, away from the loop."""
        return await shared.pool.run(work, *args)

    def rest(self) -> None:
        """Something ended; the server may have nothing to do from now on."""
        self._quiet_since = time.monotonic()

    def status(self) -> JsonObject:
        sessions = list(self.host.sessions.values())
        asked = [one for one in sessions if "questions" in one.__dict__ and one.questions.open_ones]
        return {
            "pid": os.getpid(),
            "version": __version__,
            "since": self.since,
            "clients": len(self.clients),
            "working": self.host.working,
            "asking": len(asked),
            "awake": len(sessions),
            "asleep": len(self.host.asleep),
            "services": [name for name, _ in self._services],
            "stays": self._stays,
        }

    async def _end_when_idle(self) -> None:
        """End when for a while there was no client, no session that is awake, and no job that runs."""
        while True:
            if self.clients or self.host.is_awake:
                self.rest()
            left = self._quiet_since + self._idle_s - time.monotonic()
            if left <= 0:
                self.ended.set()
                return
            await asyncio.sleep(min(left, 1.0 + self._idle_s / 100))

    async def _serve(self, name: str, service: HostService) -> None:
        try:
            await service.run(ServiceContext(self.host, self.settings, self.start_for))
        except Exception:  # the border: a service that fails must not end the sessions
            log.exception("the service %s failed", name)


def is_client_variable(name: str) -> bool:
    return name in CLIENT_VARIABLES or name.startswith("LC_")
