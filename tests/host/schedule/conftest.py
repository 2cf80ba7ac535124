"""A home with jobs, a scripted server for their models, and a clock that the test holds."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args

import pytest

from hermes.config.load import load_settings
from hermes.config.settings import Settings
from hermes.host.host import Host
from hermes.host.schedule.ticker import Ticker
from hermes.runtime.setup.process import shared
from hermes.runtime.setup.schedule_setup import job_book
from hermes.schedule.job_book import JobBook
from hermes.schedule.job_order import JobOrder
from hermes.state.schedule_rows import Delivery, DeliveryState, DueMoment, Job, ScheduleTx
from hermes.testing.server import ScriptedServer, ServerThread

NOW = 1_772_439_300.0  # 2026-03-02 08:15 UTC
Servers = Callable[..., "Bureau"]


class HeldClock:
    """A `Clock` that stands where the test puts it."""

    def __init__(self) -> None:
        self.time = NOW

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time


class Bureau:
    """The jobs of a home, and schedulers for them."""

    def __init__(self, home: Path, folder: Path, server: ScriptedServer, config: str = "") -> None:
        self.home, self.folder, self.clock, self.server = home, folder, HeldClock(), server
        (home / "scripts").mkdir(exist_ok=True)
        model = f"{{default: scripted, base_url: {server.base_url}}}"
        (home / "config.yaml").write_text(f"timezone: UTC\nmodel: {model}\n{config}")
        environ = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "SECRET_TOKEN": "do-not-tell"}
        self.settings: Settings = load_settings(home, environ=environ)
        self.host: Host | None = None

    @property
    def book(self) -> JobBook:
        return job_book(self.settings, shared.store(self.settings).schedule, self.clock.now)

    def script(self, name: str, text: str) -> str:
        (self.home / "scripts" / name).write_text(text)
        return name

    def job(self, schedule: str = "every 1h", prompt: str = "Report.", **fields: Any) -> Job:
        return self.book.create(JobOrder(schedule=schedule, prompt=prompt, **fields))

    @asynccontextmanager
    async def hosting(self) -> AsyncIterator[Host]:
        async with Host() as host:
            self.host = host
            yield host
        self.host = None

    async def tick(self, after_s: float = 0.0) -> int:
        """Let time pass, then run what is due."""
        self.clock.time += after_s
        if self.host is not None:
            return await Ticker(self.host, self.settings, self.clock).run_due()
        async with Host() as host:
            return await Ticker(host, self.settings, self.clock).run_due()

    def now(self, job: Job) -> Job:
        found = self.book.ledger.rows.read(lambda tx: tx.job(job.id))
        assert found is not None
        return found

    def rows(self, job: Job) -> list[DueMoment]:
        """What became of its moments, oldest first."""
        return self.book.history(job.id, 1_000)[::-1]

    def outbox(self) -> list[Delivery]:
        def work(tx: ScheduleTx) -> list[Delivery]:
            return [row for state in get_args(DeliveryState) for row in tx.deliveries(state, float("inf"), 100)]

        return self.book.ledger.rows.read(work)

    def asked(self) -> list[str]:
        """What the model was asked, request by request: the newest user message."""
        bodies: list[Any] = [request.json for request in self.server.requests]
        return [[m for m in body["messages"] if m["role"] == "user"][-1]["content"] for body in bodies]

    def pages(self, job: Job) -> list[str]:
        folder = self.home / "cron" / "output" / job.id
        return [file.read_text() for file in sorted(folder.glob("*.md"))]


@pytest.fixture
def bureau(tmp_path: Path) -> Iterator[Servers]:
    """`bureau(reply, …)`: a home whose model says these, in turn."""
    servers: list[ServerThread] = []

    def make(*script: Any, config: str = "") -> Bureau:
        home = tmp_path / "home"
        home.mkdir(mode=0o700, exist_ok=True)
        servers.append(ServerThread(script[0] if len(script) == 1 and callable(script[0]) else list(script)))
        return Bureau(home, tmp_path, servers[-1].__enter__(), config)

    yield make
    for server in servers:
        server.__exit__(None, None, None)


@pytest.fixture(autouse=True)
async def _shared_is_closed() -> AsyncIterator[None]:
    yield
    await shared.close()
