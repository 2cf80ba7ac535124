"""Order among calls: which of a batch may run side by side, and which earlier ones a single call waits for."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from hermes.seams import Effects
from hermes.tools.traits import conflict


@dataclass(slots=True, eq=False)
class _Lane:
    effects_of: Callable[[], Effects]
    running: Effects | None = None  # fixed once it runs

    def effects(self) -> Effects:
        return self.running if self.running is not None else self.effects_of()


class Lanes:
    """The calls under way, in the order they came. Belongs to one loop."""

    def __init__(self) -> None:
        self._line: list[_Lane] = []
        self._waiting: list[asyncio.Future[None]] = []

    @asynccontextmanager
    async def entered(self, effects_of: Callable[[], Effects]) -> AsyncIterator[None]:
        """Wait for the turn of a call, and hold its place until the block is left.

        `effects_of` is asked again after each wait: a call that ran may have moved the folder its paths start from.
        """
        place = _Lane(effects_of)
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

    def _may_run(self, place: _Lane) -> bool:
        if self._line[0] is not place:
            mine = place.effects_of()
            for earlier in self._line:
                if earlier is place:
                    break
                if conflict(mine, earlier.effects()):
                    return False
        place.running = place.effects_of()
        return True


class Waves:
    """Sorts calls into waves, one after the other: each into the first wave that has nothing to wait for.

    A call waits for every earlier one whose effects meet its own (`tools.traits.conflict`), and for no other. Earlier
    calls are remembered by the resources they touch, never compared one by one: a call costs as much as its paths are
    deep, however many came before it. `tests/runtime/test_scheduling.py` holds this against the pairwise definition.
    """

    def __init__(self) -> None:
        self._count = 0  # of the waves so far
        self._behind = 0  # waves up to the last barrier
        self._reads = _Touched()
        self._writes = _Touched()

    def add(self, effects: Effects) -> int:
        """The wave of the next call, counted from 0."""
        if effects.barrier:
            wave = self._count
            self._behind = wave + 1
        else:
            before = [self._writes.waves_of(one) for one in effects.reads]
            for one in effects.writes:
                before += (self._writes.waves_of(one), self._reads.waves_of(one))
            wave = max(before, default=0)
            wave = max(wave, self._behind)
            for one in effects.reads:
                self._reads.touch(one, wave)
            for one in effects.writes:
                self._writes.touch(one, wave)
        self._count = max(self._count, wave + 1)
        return wave


class _Touched:
    """How many waves a call has to let pass that meets these resources: itself, what it lies in, what lies in it."""

    def __init__(self) -> None:
        self._at: dict[str, int] = {}
        self._within: dict[str, int] = {}

    def waves_of(self, resource: str) -> int:
        if not self._within:
            return 0
        chain = _chain(resource)
        return max(self._within.get(chain[-1], 0), *[self._at.get(one, 0) for one in chain])

    def touch(self, resource: str, wave: int) -> None:
        chain = _chain(resource)
        self._at[chain[-1]] = max(self._at.get(chain[-1], 0), wave + 1)
        for one in chain:
            self._within[one] = max(self._within.get(one, 0), wave + 1)


def _chain(resource: str) -> list[str]:
    """The resources that this one lies in, outermost first, and itself; as `tools.traits.overlap` compares them."""
    kind, _, path = resource.partition(":")
    chain = [f"{kind}:"]
    for part in path.split("/"):
        if part:
            chain.append(f"{chain[-1]}/{part}")
    return chain
