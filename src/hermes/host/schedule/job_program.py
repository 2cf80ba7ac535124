"""Programs that a person chose for the schedule: the script of a job, and the command that a delivery goes to."""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from hermes.confinement.outside import outside
from hermes.confinement.policy import Outside
from hermes.host.schedule.job_text import JobScriptOutput
from hermes.programs import find_program
from hermes.runtime.setup.process import shared
from hermes.seams import Decision, SpawnSpec
from hermes.tools.environments.command_env import scrubbed

MOST_BYTES = 1_000_000
DELIVERY_S = 60.0


class JobProgram(Struct, frozen=True, kw_only=True):
    """A program with the facts of its job in its environment, and without keys."""

    argv: tuple[str, ...]
    cwd: str
    environ: Mapping[str, str]
    facts: Mapping[str, str]
    timeout_s: float
    stdin: bytes | None = None


async def run_script(
    file: Path, cwd: str, environ: Mapping[str, str], facts: Mapping[str, str], timeout_s: float
) -> JobScriptOutput:
    """Run a job's script to its end: `.sh` and `.bash` by bash, others by Python."""
    program = (_bash(environ, cwd),) if file.suffix in (".sh", ".bash") else (sys.executable,)
    wanted = JobProgram(argv=(*program, str(file)), cwd=cwd, environ=environ, facts=facts, timeout_s=timeout_s)
    try:
        return await _run(wanted, outside("job script"))
    except TimeoutError:
        return JobScriptOutput("", f"it took longer than {timeout_s:g} s and was stopped", 124)


async def run_delivery(
    command: str, text: str, environ: Mapping[str, str], facts: Mapping[str, str]
) -> JobScriptOutput:
    """Hand words to a command of the settings."""
    cwd = environ.get("HOME") or "/"
    argv = (_bash(environ, cwd), "-c", command)
    wanted = JobProgram(argv=argv, cwd=cwd, environ=environ, facts=facts, timeout_s=DELIVERY_S, stdin=text.encode())
    try:
        return await _run(wanted, outside("delivery command"))
    except TimeoutError:
        return JobScriptOutput("", f"it took longer than {DELIVERY_S:g} s and was stopped", 124)


async def _run(program: JobProgram, start: Outside) -> JobScriptOutput:
    spec = SpawnSpec(
        argv=program.argv,
        cwd=program.cwd,
        env={**scrubbed(program.environ), **program.facts},
        stdin=program.stdin,
        owner="schedule",
        merge_stderr=False,
        confinement=start,
    )
    child = await shared.supervisor.spawn(Decision.own("a program of the schedule"), spec)
    kept = bytearray()
    try:
        async with asyncio.timeout(program.timeout_s):
            async for chunk in child.output():
                kept += chunk[: MOST_BYTES - len(kept)]
            code = await child.wait()
    except TimeoutError:
        await child.stop()
        raise
    finally:
        child.release()
    return JobScriptOutput(kept.decode("utf-8", "replace"), child.stderr_tail().decode("utf-8", "replace"), code)


def _bash(environ: Mapping[str, str], cwd: str) -> str:
    return find_program("bash", environ, cwd) or "/bin/bash"
