"""The scene in which the agent's process is killed: it runs in one of its own, and `kill -9` ends it in a command."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from hermes.confinement.outside import outside
from hermes.errors import UserError
from hermes.runtime.setup.process import shared
from hermes.seams import Decision, SpawnSpec
from hermes.surfaces.cli.context import Cli

LINES_BEFORE = 3  # of the list, when the process is killed
WAIT_S = 120.0
LOOK_S = 0.05


async def killed_turn(cli: Cli, folder: Path, session_id: str, *, is_slow: bool) -> int:
    """Run the turn in a process, kill it when the list has a few lines; how many it has then."""
    words = ["-p", cli.profile, "demo", "--scene", "list", "--session", session_id, "--folder", str(folder)]
    spec = SpawnSpec(
        argv=(sys.executable, "-P", "-m", "hermes.surfaces.cli.main", *words, *(() if is_slow else ("--fast",))),
        cwd=str(folder.parent),
        env=dict(cli.environ),
        owner="demo",
        confinement=outside("own demo"),
    )
    child = await shared.supervisor.spawn(Decision.own("play a scene of the demo"), spec)
    list_file = folder / "price_list.csv"
    try:
        async with asyncio.TaskGroup() as group:
            relay = group.create_task(_relay(cli, child.output()))
            async with asyncio.timeout(WAIT_S):
                while _lines(list_file) < LINES_BEFORE and not relay.done():  # noqa: ASYNC110 - nobody could set an event
                    await asyncio.sleep(LOOK_S)
            if not relay.done():
                os.kill(child.pid, signal.SIGKILL)
        await child.wait()
    except TimeoutError as error:
        raise UserError("the scene did not begin its command in time; see: hermes doctor") from error
    finally:
        if not child.is_gone:
            await child.stop()
        child.release()
    return _lines(list_file)


async def _relay(cli: Cli, chunks: AsyncIterator[bytes]) -> None:
    async for chunk in chunks:
        cli.out.write(chunk.decode("utf-8", "replace"))


def _lines(file: Path) -> int:
    try:
        return len(file.read_bytes().splitlines())
    except FileNotFoundError:
        return 0
