"""When the keeper cannot see to the end of its calls, nothing of them is left all the same."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from hermes.tools.supervisor.confine.probe import Wish, enforcement
from hermes.tools.supervisor.supervisor import ProcessSupervisor

pytestmark = pytest.mark.real
SOURCE = str(Path(__file__).resolve().parents[4] / "src")
RUNTIME = """
import asyncio, os, sys
from hermes.confinement.plan import PlanRequest
from hermes.scope import TurnScope
from hermes.seams import Decision
from hermes.tools.environments.local import Border, LocalEnvironment, LocalOptions
from hermes.tools.supervisor.supervisor import ProcessSupervisor

async def main(level, folder, command):
    supervisor = ProcessSupervisor()
    env = {"PATH": "/usr/bin:/bin", "HOME": folder}
    border = Border(mode="on", level=level, request=PlanRequest(workspace=folder, hermes_home=folder + "/h"))
    one = LocalEnvironment(supervisor, folder, LocalOptions(env=env, border=border, source_bashrc=False))
    await one.execute("true", Decision(allowed=True), TurnScope())
    print(supervisor.keeper_pid, flush=True)
    await one.execute(command, Decision(allowed=True), TurnScope())

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("stopped", [False, True], ids=["keeper killed", "keeper stopped and runtime killed"])
async def test_nothing_of_a_call_is_left(
    supervisor: ProcessSupervisor, root: Path, level: Wish, *, stopped: bool
) -> None:
    found = await enforcement(supervisor, level)
    if found.level != level:
        pytest.skip(f"level {level} is not to be had here: {found.why}")
    mark = f"8123{os.getpid()}"
    command = f"sleep {mark} & bash -c 'sleep {mark}; :'"
    words = [sys.executable, "-c", RUNTIME, level, str(root / "work"), command]
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE}
    runtime = await asyncio.create_subprocess_exec(*words, env=environ, stdout=subprocess.PIPE)
    assert runtime.stdout is not None
    keeper = int(await runtime.stdout.readline())
    await until(lambda: len(sleepers(mark)) >= 2)
    if stopped:
        os.kill(keeper, signal.SIGSTOP)
        runtime.kill()
    else:
        os.kill(keeper, signal.SIGKILL)
    try:
        await until(lambda: not sleepers(mark))
    finally:
        with contextlib.suppress(ProcessLookupError):
            runtime.kill()
        await runtime.communicate()
    await until(lambda: not psutil.pid_exists(keeper))


def sleepers(mark: str) -> list[psutil.Process]:
    return [each for each in psutil.process_iter(["cmdline"]) if each.info["cmdline"] == ["sleep", mark]]


async def until(holds: object) -> None:
    """Wait for a state of the process table, which tells nobody; bounded, and generous on a busy machine."""
    assert callable(holds)
    async with asyncio.timeout(15):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.05)
