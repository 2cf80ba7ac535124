"""One operation on a project at a time, in this process and in others; cleaning only when there is none at all."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hermes.context.checkpoints.model import CheckpointError

WAIT_S = 10.0
_STEP_S = 0.02


@asynccontextmanager
async def locked(file: Path, *, shared: bool = False) -> AsyncIterator[None]:
    """Hold the lock on `file`. `CheckpointError` when somebody else keeps it for longer than ten seconds."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        await _acquired(fd, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


async def _acquired(fd: int, kind: int) -> None:
    try:
        async with asyncio.timeout(WAIT_S):
            while True:
                try:
                    fcntl.flock(fd, kind | fcntl.LOCK_NB)
                except BlockingIOError:
                    await asyncio.sleep(_STEP_S)
                else:
                    return
    except TimeoutError as error:
        raise CheckpointError("the snapshots are busy elsewhere") from error
