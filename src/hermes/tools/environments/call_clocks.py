"""The clocks of commands that run: they stand still while a person is asked something that a command waits for."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class CallClocks:
    """The time limits of one environment's running commands, on one loop at a time."""

    def __init__(self) -> None:
        self._running: list[asyncio.Timeout] = []
        self._left: dict[asyncio.Timeout, float] = {}
        self._pauses = 0

    @contextmanager
    def counted(self, clock: asyncio.Timeout) -> Iterator[None]:
        """Let `clock` be one that stands still."""
        self._running.append(clock)
        try:
            yield
        finally:
            self._running.remove(clock)
            self._left.pop(clock, None)

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """No clock runs meanwhile."""
        loop = asyncio.get_running_loop()
        self._pauses += 1
        if self._pauses == 1:
            for clock in self._running:
                when = clock.when()
                if when is not None and not clock.expired():
                    self._left[clock] = when - loop.time()
                    clock.reschedule(None)
        try:
            yield
        finally:
            self._pauses -= 1
            if self._pauses == 0:
                for clock, left_s in self._left.items():
                    clock.reschedule(loop.time() + left_s)
                self._left.clear()
