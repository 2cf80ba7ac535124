"""Which calls of a batch may run side by side: exactly those whose effects do not meet."""

from collections.abc import Sequence

from hermes.seams import Effects
from hermes.tools.traits import conflict


def next_wave(pending: Sequence[Effects]) -> list[int]:
    """The positions in `pending` that may run now, all at once; never empty unless `pending` is.

    A call may run when nothing before it that is still pending conflicts with it. So conflicting calls keep their
    order, and a call waits only for what it conflicts with. Ask again after each wave, with the effects worked out
    afresh: a call that ran may have moved the working directory the others' paths start from.
    """
    wave: list[int] = []
    for position, effects in enumerate(pending):
        if not any(conflict(effects, earlier) for earlier in pending[:position]):
            wave.append(position)
        if effects.barrier:
            break  # nothing behind a barrier can run before it
    return wave
