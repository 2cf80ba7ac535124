"""Waiting for a session that another process works on."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hermes.errors import SessionInUse, SessionMoved
from hermes.runtime.setup.environment_setup import NO_MESSAGES
from hermes.types import StatusChanged

if TYPE_CHECKING:
    from hermes.host.hosted_session import HostedSession

LOOK_S = 0.2  # how often it is looked whether the session is free
REMIND_S = 60.0  # how often a person who waits is told


class SessionLine:
    """Takes a turn of `live` as soon as its session is free. `stop` ends the waiting, from the same loop."""

    def __init__(self, live: "HostedSession", tell: Callable[[StatusChanged], None]) -> None:
        self._live = live
        self._tell = tell
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        self._stopped.set()

    async def turn(self, question: Any, system_message: str | None) -> dict[str, Any]:
        """The turn's result, once nobody else works on the session; `KeyboardInterrupt` when waiting was stopped."""
        while True:
            try:
                return await self._live.ask(question, system_message)
            except (SessionInUse, SessionMoved) as error:
                await self._until_free(str(error).partition(";")[0])

    async def _until_free(self, who: str) -> None:
        loop = asyncio.get_running_loop()
        told_at = loop.time() - REMIND_S
        while True:
            if loop.time() - told_at >= REMIND_S:
                told_at = loop.time()
                self._tell(StatusChanged("waiting", f"{who}; waiting for it"))
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._stopped.wait()
            except TimeoutError:
                # Under the id that the session has by now: whoever works on it may compress it.
                record = await self._live.db.store.load(self._live.session_id, NO_MESSAGES)
                if record is None or record.lease is None:
                    return
            else:
                raise KeyboardInterrupt
