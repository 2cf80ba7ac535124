"""Ends of samples on their way to the store: made into results on one thread, several in one commit.

A worker hands over what it has brought to its end and goes on with its next sample. One thread at a time makes the
results, since all of it is Python: two would only take the interpreter from each other, and from the conversations.
Until its row is stored a sample is *running*, so a kill here loses nothing: its session has its last word, and whoever
goes on makes the result from that.
"""

import asyncio
from typing import TYPE_CHECKING

from hermes.batch.record import Renderer
from hermes.batch.sample_result import SampleResult, result_of
from hermes.batch.sample_run import SampleContext, SampleEnd, drop_workspace

if TYPE_CHECKING:
    from hermes.batch.opened_run import OpenedRun

AT_ONCE = 32  # results in one commit; so many are held in memory with their lines and records
GATHER_S = 0.05  # others that end meanwhile share the commit; no worker waits for it


class SampleWriter:
    """The line of ends that wait for their rows; `put` waits when it is as long as there are workers."""

    def __init__(self, run: "OpenedRun", ctx: SampleContext) -> None:
        self._run = run
        self._ctx = ctx
        self._line: asyncio.Queue[SampleEnd | SampleResult | None] = asyncio.Queue(run.spec.num_workers)
        self._unwritten: set[int] = set()
        self._renderer = Renderer()

    @property
    def unwritten(self) -> frozenset[int]:
        """Samples that were handed over and have no row yet."""
        return frozenset(self._unwritten)

    async def put(self, end: SampleEnd | SampleResult) -> None:
        """Hand over a sample that has come to its end."""
        self._unwritten.add(end.row.index)
        await self._line.put(end)

    async def close(self) -> None:
        """Nothing more is handed over; `write_all` ends when it has written what was."""
        await self._line.put(None)

    async def write_all(self) -> None:
        """Write what is handed over until it is closed."""
        is_open = True
        while is_open:
            found = [await self._line.get()]
            if found[0] is not None:
                await asyncio.sleep(GATHER_S)
            while len(found) < AT_ONCE and not self._line.empty():
                found.append(self._line.get_nowait())
            is_open = None not in found
            ends = [end for end in found if end is not None]
            await self._run.process.pool.run(self._write, ends)
            self._unwritten.difference_update(end.row.index for end in ends)
            self._run.tell()

    def _write(self, ends: list[SampleEnd | SampleResult]) -> None:
        results = [end if isinstance(end, SampleResult) else result_of(self._ctx, end, self._renderer) for end in ends]
        self._run.ended(results)
        for end, result in zip(ends, results, strict=True):
            if isinstance(end, SampleEnd) and result.is_ended:
                drop_workspace(self._ctx, end)
