"""Run a started child to its end within its time, keeping what it prints; whatever happens, nothing of it stays."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import NamedTuple

from hermes.seams import Child, ExecResult
from hermes.tools.environments.call_clocks import CallClocks
from hermes.tools.environments.output_spool import Spool
from hermes.tools.supervisor.threads import RunBlocking

End = Callable[[], Awaitable[None]]
TIMEOUT_GRACE_S = 0.5
INTERRUPT_GRACE_S = 0.3
TIMED_OUT = 124
SIGNAL_BASE = 128


output_watch: ContextVar[Callable[[bytes], None] | None] = ContextVar("output_watch", default=None)
"""Who is shown what the commands of this call print, as it comes."""


class CommandInterrupted(asyncio.CancelledError):
    """The cancellation that stopped a command, carrying what it had printed until then."""

    def __init__(self, output: str) -> None:
        super().__init__()
        self.output = output


class Ended(NamedTuple):
    """How a child ended."""

    code: int
    timed_out: bool


async def run_child(
    child: Child,
    spool: Spool,
    limit_s: float | None,
    run_blocking: RunBlocking,
    end: End | None = None,
    clocks: CallClocks | None = None,
) -> Ended:
    """Read `child` into `spool` until it ends or `limit_s` has passed; then it is stopped, and that is no error.

    A cancellation stops the child and passes on. The child is released in every case. `end` stops what the child only
    stands for: the command on the other side of an ssh connection. `clocks` may stop the time meanwhile.
    """
    try:
        try:
            async with asyncio.timeout(limit_s) as clock:
                with clocks.counted(clock) if clocks is not None else contextlib.nullcontext():
                    await _read(child, spool, run_blocking)
                    return Ended(_code(await child.wait()), timed_out=False)
        except TimeoutError:
            if end is not None:
                await end()
            await child.stop(TIMEOUT_GRACE_S)
            await _read(child, spool, run_blocking)
            return Ended(TIMED_OUT, timed_out=True)
        except asyncio.CancelledError as cancelled:
            await _stop_quickly(child, end)
            await _read_quickly(child, spool, run_blocking)
            raise CommandInterrupted(spool.finish().decode("utf-8", "replace")) from cancelled
    finally:
        child.release()


def result_of(ended: Ended, spool: Spool, output: str, *, cwd: str, backend: str) -> ExecResult:
    """What a command gave: `output` is what is shown of it, `spool` knows how much there was and where all of it is."""
    return ExecResult(
        output=output,
        exit_code=ended.code,
        cwd=cwd,
        backend=backend,
        timed_out=ended.timed_out,
        total_bytes=spool.total_bytes,
        spill_path=str(spool.path) if spool.path else None,
    )


async def _stop_quickly(child: Child, end: End | None) -> None:
    # The keeper goes on with it should this wait be cut short by a second cancellation or by the limit.
    try:
        async with asyncio.timeout(1.0 if end is None else 3.0):
            if end is not None:
                await end()
            await child.stop(INTERRUPT_GRACE_S)
    except TimeoutError:
        return


async def _read_quickly(child: Child, spool: Spool, run_blocking: RunBlocking) -> None:
    """What it printed until it was stopped, if that is to be had at once."""
    try:
        async with asyncio.timeout(1.0):
            await _read(child, spool, run_blocking)
    except TimeoutError:
        return


async def _read(child: Child, spool: Spool, run_blocking: RunBlocking) -> None:
    watch = output_watch.get()
    async for chunk in child.output():
        if watch is not None:
            watch(chunk)
        if spool.wants_disk:
            await run_blocking(spool.add, chunk)
        else:
            spool.add(chunk)


def _code(code: int) -> int:
    """As a shell says it: 128 and the signal."""
    return SIGNAL_BASE - code if code < 0 else code
