"""The garbage collector while a program loads: what is made then stays, so looking for garbage in it is wasted."""

import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

SETTLED_S = 0.5  # from the start of a conversation: by then its parts are loaded


def begin() -> None:
    """Collect nothing for now. Whoever calls this calls `end` on the way out, whatever happens."""
    gc.disable()


def settle_soon(loop: "AbstractEventLoop") -> None:
    """In a while, collect again, but leave out what has been loaded: full collections get short and stay so."""
    loop.call_later(SETTLED_S, _settle)


def end() -> None:
    gc.enable()


def _settle() -> None:
    gc.freeze()
    gc.enable()
