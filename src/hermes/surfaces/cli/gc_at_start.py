"""The garbage collector while a program loads: what is made then stays, so looking for garbage in it is wasted."""

import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

THRESHOLDS = (10_000, 20, 20)  # not 700, 10, 10: there collections were a tenth of a busy process
SETTLED_S = 0.5  # from the start of a conversation: by then its parts are loaded


def begin() -> None:
    """Collect nothing for now. Whoever calls this calls `end` on the way out, whatever happens."""
    gc.disable()


def settle_soon(loop: "AbstractEventLoop") -> None:
    """In a while, collect again, but leave out what has been loaded: full collections get short and stay so."""
    loop.call_later(SETTLED_S, settle)


def end() -> None:
    gc.enable()


def settle() -> None:
    """Leave out what has been loaded, and look for garbage in larger heaps: a turn makes much that dies by itself."""
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    gc.enable()
