"""The end of what a running command prints, told a few times a second: a flood costs no more than a drip."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from hermes.seams import ToolContext
from hermes.tools.environments.run_child import output_watch
from hermes.tools.terminal.output_text import plain
from hermes.types import OutputTail

EVERY_S = 0.1
TAIL_BYTES = 8_192
TAIL_LINES = 12
LINE_CHARS = 400


class LiveTail:
    """Takes chunks as they come; tells the last whole lines, and the one being written."""

    def __init__(self, ctx: ToolContext) -> None:
        self._ctx = ctx
        self._kept = bytearray()
        self._is_cut = False
        self._timer: asyncio.TimerHandle | None = None

    def add(self, chunk: bytes) -> None:
        self._kept += chunk[-TAIL_BYTES:]
        if len(self._kept) > 2 * TAIL_BYTES:
            del self._kept[:-TAIL_BYTES]
            self._is_cut = True
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(EVERY_S, self._tell)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _tell(self) -> None:
        self._timer = None
        lines = plain(self._kept.decode("utf-8", "replace")).splitlines()
        if self._is_cut and len(lines) > 1:
            lines = lines[1:]  # half a line may be half a secret
        shown = "\n".join(line[:LINE_CHARS] for line in lines[-TAIL_LINES:])
        self._ctx.emit(OutputTail(self._ctx.call_id, shown))


@contextmanager
def live_tail(ctx: ToolContext) -> Iterator[None]:
    """While it lasts, the commands of this call are told as they print."""
    tail = LiveTail(ctx)
    token = output_watch.set(tail.add)
    try:
        yield
    finally:
        output_watch.reset(token)
        tail.close()
