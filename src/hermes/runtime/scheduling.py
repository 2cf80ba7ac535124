"""Which calls of a batch may run side by side: exactly those whose effects do not meet."""

from hermes.seams import Effects


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
