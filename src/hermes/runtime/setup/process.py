"""What all agents of a process share, each part made on first use: caches and pools, never a session's state."""

import asyncio
import itertools
import os
import secrets
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.config.sections import state as state_section
from hermes.config.settings import Settings
from hermes.errors import UserError
from hermes.models.http.loop_http import LoopHttp
from hermes.models.providers.windows import WindowMemory
from hermes.runtime.session.history_cache import HistoryCache
from hermes.runtime.setup.tool_view_cache import ToolViewCache
from hermes.state.stores import Durability, open_store, place_of
from hermes.tools.calling.pool import DaemonPool

if TYPE_CHECKING:
    from hermes.runtime.options import AgentOptions
    from hermes.seams import EventStore
    from hermes.state.queries import SessionStore
    from hermes.tools.supervisor.supervisor import ProcessSupervisor


class SystemClock:
    """`Clock` of the machine."""

    now = staticmethod(time.time)
    monotonic = staticmethod(time.perf_counter)


class RandomIds:
    """`Ids` that never repeat: a random beginning for each of these, and a count."""

    def __init__(self) -> None:
        self._begin = secrets.token_hex(6)
        self._count = itertools.count(secrets.randbelow(0x1000))

    def session(self) -> str:
        return f"{time.strftime('%Y%m%d_%H%M%S')}_{secrets.token_hex(3)}"

    def new(self, prefix: str) -> str:
        return f"{prefix}_{self._begin}{next(self._count):04x}"


class ProcessParts:
    """Stores by file, the pool of threads, connections to models, and the supervisor of this process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # guards the parts below
        self._stores: dict[tuple[str, Durability], SessionStore] = {}
        self._supervisor: ProcessSupervisor | None = None
        self.http = LoopHttp()
        self.window_memory = WindowMemory(self.http)
        self.pool = DaemonPool()
        self.clock = SystemClock()
        self.ids = RandomIds()
        self.warm = HistoryCache()
        self.views = ToolViewCache()

    def store(self, settings: Settings) -> "SessionStore":
        """The store of a home; all agents of the process write through the same one."""
        place, durability = place_of(settings.home), settings.of(state_section.Section).durability
        key = (os.path.abspath(place) if isinstance(place, Path) else place, durability)  # noqa: PTH100 - links in the user's own path stay
        with self._lock:
            if key not in self._stores:
                self._stores[key] = open_store(place, durability)
            return self._stores[key]

    @property
    def supervisor(self) -> "ProcessSupervisor":
        from hermes.tools.supervisor.supervisor import ProcessSupervisor  # paid by the first command

        with self._lock:
            if self._supervisor is None:
                self._supervisor = ProcessSupervisor()
            return self._supervisor

    async def close(self) -> None:
        """Release everything; what is asked for afterwards is made anew."""
        with self._lock:
            stores, self._stores = list(self._stores.values()), {}
            supervisor, self._supervisor = self._supervisor, None
        await self.http.close()
        if supervisor is not None:
            await supervisor.close()
        async with asyncio.TaskGroup() as group:
            for store in stores:
                group.create_task(store.close())


def store_of(options: "AgentOptions", settings: Settings, process: ProcessParts) -> "EventStore":
    """The store that an agent was given, else the one of its home."""
    given = options.session.session_db
    if options.session.store is not None:
        return options.session.store
    if given is None:
        return process.store(settings)
    found: EventStore | None = getattr(given, "store", None)
    if found is None:
        raise UserError("session_db must be a hermes.state.SessionDB")
    return found


shared = ProcessParts()
