"""Wake the session whose background process has ended, when it was to be told and nobody talks to it just now."""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

from msgspec import DecodeError

from hermes.config.sections import terminal
from hermes.config.settings import Settings
from hermes.errors import HermesError
from hermes.host.service import HostService, ServiceContext
from hermes.runtime.setup.process import shared
from hermes.tools.environments.background import BackgroundRecord
from hermes.typed import from_json

LOOK_S = 1.0
TEXT = "A background process of yours has ended; what it left is told with this message. Go on with what waited for it."


async def run(context: ServiceContext) -> None:
    """Look once a second; without processes that is one look at a folder which is not there."""
    folder = context.settings.home / "processes"
    told: set[str] = set()
    while True:
        await asyncio.sleep(LOOK_S)
        if not folder.is_dir():
            continue
        for record in await shared.pool.run(_ended, folder, frozenset(told)):
            host, session_id = context.host, context.host.current_id(record.order.session_id)
            awake = host.sessions.get(session_id)
            if awake is None and session_id not in host.asleep:
                continue  # another process has it
            if awake is not None and (awake.is_busy or awake.queue.open_ones):
                continue  # its turn is told by itself
            told.add(record.id)
            with contextlib.suppress(HermesError):  # it is told with the next message, as ever
                await host.submit(session_id, TEXT, "queue", f"ended:{record.id}")


def _ended(folder: Path, known: frozenset[str]) -> list[BackgroundRecord]:
    return [record for record in _records(folder, known) if record.order.notify]


def _records(folder: Path, known: frozenset[str]) -> Iterator[BackgroundRecord]:
    """Those that have ended, as far as nobody has seen it."""
    for each in folder.iterdir():
        if each.name not in known and (each / "exit").exists() and not (each / "seen").exists():
            with contextlib.suppress(OSError, DecodeError):
                yield from_json((each / "record.json").read_bytes(), BackgroundRecord)


def _is_local(settings: Settings) -> bool:
    return settings.of(terminal.Section).backend == "local"


SERVICE = HostService(run=run, is_wanted=_is_local)
