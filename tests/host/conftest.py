"""Live sessions of a host in this process, over a scripted server and a real store."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hermes.config.load import load_settings
from hermes.host.agent_settings import AgentSettings
from hermes.host.events import LiveEvent, NumberedEvent, TurnEnded
from hermes.host.host import Host
from hermes.host.hosted_session import SessionStart
from hermes.host.live_session import LiveSession
from hermes.runtime.setup.process import shared
from hermes.testing.server import ScriptedServer

WAIT_S = 60.0
Hosting = Callable[..., AbstractAsyncContextManager[Host]]
Starting = Callable[..., SessionStart]


class Ear:
    """`SessionListener` that keeps what it hears; `said` answers questions with it, unless it is None."""

    def __init__(self, session: LiveSession, *, can_answer: bool = False) -> None:
        self.can_answer = can_answer
        self.heard: list[LiveEvent] = []
        self._ended: asyncio.Queue[TurnEnded] = asyncio.Queue()
        self._news = asyncio.Event()
        session.listen(self)

    def emit(self, event: LiveEvent) -> None:
        self.heard.append(event)
        self._news.set()
        if isinstance(event, TurnEnded):
            self._ended.put_nowait(event)

    def offer(self, _text: str) -> bool:
        return False

    async def hears(self, kind: type) -> None:
        """Wait until it has heard an event of this kind."""
        async with asyncio.timeout(WAIT_S):
            while not any(isinstance(event, kind) for event in self.heard):
                self._news.clear()
                await self._news.wait()

    async def turn_end(self) -> TurnEnded:
        async with asyncio.timeout(WAIT_S):
            return await self._ended.get()


async def stored_until(stream: AsyncIterator[NumberedEvent], *ends: type) -> list[NumberedEvent]:
    """The stored events of a stream, up to the first of one of these kinds."""
    found: list[NumberedEvent] = []
    async with asyncio.timeout(WAIT_S):
        async for item in stream:
            if item.is_stored:
                found.append(item)
                if isinstance(item.event, ends):
                    return found
    return found


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def starting(home: Path, tmp_path: Path) -> Starting:
    """`starting(server, **flags)`: what sessions are opened with."""

    def start(server: ScriptedServer, **more: Any) -> SessionStart:
        (tmp_path / "gone").mkdir(exist_ok=True)  # whose removal has to be asked for
        (tmp_path / "gone" / "file").write_text("words")
        flags = {"model.default": "scripted", "model.base_url": server.base_url}
        flags |= {name.replace("__", "."): value for name, value in more.pop("flags", {}).items()}
        settings = load_settings(home, environ={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}, flags=flags)
        return SessionStart(settings=settings, asked=AgentSettings(), folder=str(tmp_path), **more)

    return start


@pytest.fixture
def hosting() -> Hosting:
    """`async with hosting() as host`: a host, and nothing of it left afterwards."""

    @asynccontextmanager
    async def run(**options: Any) -> AsyncIterator[Host]:
        async with Host(**options) as host:
            yield host
        await shared.close()

    return run
