"""Order among calls that come one by one: each waits for the earlier ones whose effects meet its own, no other."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from hermes.seams import Effects
from hermes.tools.traits import conflict


@dataclass(slots=True, eq=False)
class _Place:
    effects_of: Callable[[], Effects]
    running: Effects | None = None  # fixed once it runs

    def effects(self) -> Effects:
        return self.running if self.running is not None else self.effects_of()


class Lanes:
    """The calls under way, in the order they came. Belongs to one loop."""

    def __init__(self) -> None:
        self._line: list[_Place] = []
        self._waiting: list[asyncio.Future[None]] = []

    @asynccontextmanager
    async def entered(self, effects_of: Callable[[], Effects]) -> AsyncIterator[None]:
        """Wait for the turn of a call, and hold its place until the block is left.

        `effects_of` is asked again after each wait: a call that ran may have moved the folder its paths start from.
        """
        place = _Place(effects_of)
        self._line.append(place)
        try:
            while not self._may_run(place):
                moved = asyncio.get_running_loop().create_future()
                self._waiting.append(moved)
                await moved
            yield
        finally:
            self._line.remove(place)
            waiting, self._waiting = self._waiting, []
            for one in waiting:
                if not one.done():
                    one.set_result(None)

    def _may_run(self, place: _Place) -> bool:
        if self._line[0] is not place:
            mine = place.effects_of()
            for earlier in self._line:
                if earlier is place:
                    break
                if conflict(mine, earlier.effects()):
                    return False
        place.running = place.effects_of()
        return True
