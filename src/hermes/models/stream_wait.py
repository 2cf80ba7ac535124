"""Waiting for a model: its stream is closed whatever happens, and a person is told while nothing comes."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable

from hermes.types import StatusChanged

STILL_WAITING_S = 10.0


async def let_go(stream: AsyncIterator[object]) -> None:
    """Close a stream that an exception cuts short; left to the garbage collector, its request would live on."""
    if isinstance(stream, AsyncGenerator):
        await stream.aclose()


class StreamWait:
    """Tells a person who waits that nothing has come for a while. Each event resets `is_quiet`.

    The wait ends when `tell` is taken away. The timer is not: the next wait, most often soon after, finds it running.
    """

    __slots__ = ("_began", "_loop", "_model", "_timer", "_waited", "is_quiet", "tell")

    def __init__(self) -> None:
        self.tell: Callable[[StatusChanged], None] | None = None  # while somebody waits
        self._model = ""
        self._waited = 0.0
        self._began = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.is_quiet = True

    def start(self, tell: Callable[[StatusChanged], None], model: str) -> None:
        """From now on nothing has come from `model`."""
        loop = asyncio.get_running_loop()
        self.tell, self._model, self._waited, self.is_quiet = tell, model, 0.0, True
        self._began = loop.time()
        if self._timer is None or self._loop is not loop:
            self._loop = loop
            self._timer = loop.call_later(STILL_WAITING_S, self._passed)

    def _passed(self) -> None:
        assert self._loop is not None
        if self.tell is None:
            self._timer = None
            return
        left = self._began + STILL_WAITING_S - self._loop.time()
        if left <= 0:
            self._waited = self._waited + STILL_WAITING_S if self.is_quiet else 0.0
            if self.is_quiet:
                self.tell(StatusChanged("waiting", f"nothing has come from {self._model} for {self._waited:.0f} s"))
            self.is_quiet = True
            left = STILL_WAITING_S
        self._timer = self._loop.call_later(left, self._passed)
