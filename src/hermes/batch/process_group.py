"""Several processes that share a run: each takes samples from the store, this one writes the files.

For tools that need processors; model calls alone need no second process. A process that dies leaves its samples to the
others, which go on from the last commits.
"""

import asyncio
import sys
from collections.abc import AsyncIterator

import msgspec
from msgspec import Struct

from hermes.batch.opened_run import OpenedRun
from hermes.batch.run_budget import used_up
from hermes.batch.run_spec import replace_spec
from hermes.confinement.outside import outside
from hermes.errors import ToolError, UserError
from hermes.seams import Child, Decision, SpawnSpec
from hermes.types import JsonObject

STOPPED = "stopped: "  # how a process says why it went no further
STOP_GRACE_S = 5.0  # for the samples of a process to be put back
MAX_DEATHS = 3  # of one process after another, none of which brought a sample to its end


class WorkerOrder(Struct):
    """What a worker is told on its first line of stdin, where no list of processes shows the key."""

    run_id: str
    spec: JsonObject  # with the key
    flags: JsonObject


async def run_in_processes(run: OpenedRun) -> None:
    """Run what waits in `spec.processes` processes, `num_workers` samples at once in all of them."""
    many = min(run.spec.processes, run.spec.num_workers)
    said: list[str] = []  # why processes went no further; the others have their own share of the budget
    async with asyncio.TaskGroup() as group:
        for number in range(many):
            share = run.spec.num_workers // many + (number < run.spec.num_workers % many)
            group.create_task(_keep_one(run, share, many, said), name=f"batch process {number}")
    if said:
        spent = await run.process.pool.run(run.rows.spending, run.spec.run_id)
        run.stop.drain(used_up(run.spec, spent.cost_usd, spent.tokens) or said[0])


async def _keep_one(run: OpenedRun, share: int, many: int, said: list[str]) -> None:
    deaths = 0
    while True:
        before = run.progress.here
        code = await _one(run, share, many, said)
        counts = await run.process.pool.run(run.rows.counts, run.spec.run_id)
        if code == 0 or run.stop.reason or not (counts["waiting"] + counts["running"]):
            return
        deaths = 1 if run.progress.here > before else deaths + 1
        if deaths >= MAX_DEATHS:
            raise UserError(f"a process of the run has ended {deaths} times with code {code}; see: hermes logs")


async def _one(run: OpenedRun, share: int, many: int, said: list[str]) -> int:
    """One process to its end; its exit code."""
    spec = run.spec
    spent = await run.process.pool.run(run.rows.spending, spec.run_id)
    caps = {  # of all that the run has spent, and this one's share of what is left
        "run_usd": None if spec.run_usd is None else _share(spec.run_usd, spent.cost_usd, many),
        "run_tokens": None if spec.run_tokens is None else int(_share(spec.run_tokens, spent.tokens, many)),
    }
    order = WorkerOrder(
        run_id=spec.run_id,
        spec=msgspec.to_builtins(replace_spec(spec, num_workers=share, processes=1, **caps)),
        flags=dict(run.settings.flags),
    )
    child = await run.process.supervisor.spawn(
        Decision.own("a process of a batch run"),
        SpawnSpec(
            argv=(sys.executable, "-m", "hermes.batch.worker"),
            cwd=spec.folder,
            env={**run.settings.environ, "HERMES_HOME": str(run.settings.home), "PYTHONPATH": _path()},
            owner=f"batch {spec.run_name}",
            keep_stdin=True,
            merge_stderr=False,
            confinement=outside("batch process"),
        ),
    )
    halted = asyncio.Event()
    run.stop.listen(lambda: halted.set() if run.stop.is_hard else child.close_stdin())
    try:
        await child.write(msgspec.json.encode(order) + b"\n")
        async with asyncio.TaskGroup() as group:
            stopping = group.create_task(_stop_when(halted, child), name="batch process stop")
            async for line in _lines(child):
                if line.isdigit():
                    await run.process.pool.run(_take, run, int(line))
                elif line.startswith(STOPPED.encode()):
                    said.append(line.removeprefix(STOPPED.encode()).decode("utf-8", "replace"))
                run.tell()
            code = await child.wait()
            stopping.cancel()
        return code
    except* (BrokenPipeError, ToolError):
        pass
    finally:
        child.release()
    return 1


async def _stop_when(halted: asyncio.Event, child: Child) -> None:
    await halted.wait()
    await child.stop(grace_s=STOP_GRACE_S)


def _share(cap: float, spent: float, many: int) -> float:
    return spent + max(0.0, cap - spent) / many


def _path() -> str:
    """Where this program is imported from, also when that is no place of an installation."""
    return ":".join(place for place in sys.path if place)


async def _lines(child: Child) -> AsyncIterator[bytes]:
    rest = b""
    async for chunk in child.output():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.strip()


def _take(run: OpenedRun, index: int) -> None:
    found = run.rows.sample(run.spec.run_id, index)
    if found is not None:
        run.take(*found)
