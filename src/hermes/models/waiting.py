"""Waiting for a model: its stream is closed whatever happens, and a person is told while nothing comes."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable

from hermes.types import ModelEvent, StatusChanged

STILL_WAITING_S = 10.0


class Closing:
    """Close a stream whatever happens; left to the garbage collector, its request would live on for a while."""

    __slots__ = ("_events",)

    def __init__(self, events: AsyncIterator[ModelEvent]) -> None:
        self._events = events

    async def __aenter__(self) -> AsyncIterator[ModelEvent]:
        return self._events

    async def __aexit__(self, *_: object) -> None:
        if isinstance(self._events, AsyncGenerator):
            await self._events.aclose()


class Waiting:
    """Tells a person who waits that nothing has come for a while. Each event resets `is_quiet`."""

    def __init__(self, tell: Callable[[StatusChanged], None], model: str) -> None:
        self._tell = tell
        self._model = model
        self._waited = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.is_quiet = True
        self._again()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _again(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(STILL_WAITING_S, self._passed)

    def _passed(self) -> None:
        self._waited = self._waited + STILL_WAITING_S if self.is_quiet else 0.0
        if self.is_quiet:
            self._tell(StatusChanged("waiting", f"nothing has come from {self._model} for {self._waited:.0f} s"))
        self.is_quiet = True
        self._again()
