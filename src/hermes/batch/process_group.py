"""Several processes that share a run: each takes samples from the store, this one writes the files.

For tools that need processors; model calls alone need no second process. A process that dies leaves its samples to the
others, which go on from the last commits.
"""

import asyncio
import sys
from collections.abc import AsyncIterator

import msgspec
from msgspec import Struct

from hermes.batch.run import OpenedRun
from hermes.batch.run_spec import replace_spec
from hermes.confinement.outside import outside
from hermes.errors import ToolError, UserError
from hermes.seams import Child, Decision, SpawnSpec
from hermes.types import JsonObject

MAX_DEATHS = 3  # of one process after another, none of which brought a sample to its end


class WorkerOrder(Struct):
    """What a worker is told on its first line of stdin, where no list of processes shows the key."""

    run_id: str
    spec: JsonObject  # with the key
    flags: JsonObject


async def run_in_processes(run: OpenedRun) -> None:
    """Run what waits in `spec.processes` processes, `num_workers` samples at once in all of them."""
    many = min(run.spec.processes, run.spec.num_workers)
    async with asyncio.TaskGroup() as group:
        for number in range(many):
            share = run.spec.num_workers // many + (number < run.spec.num_workers % many)
            group.create_task(_keep_one(run, share, many), name=f"batch process {number}")


async def _keep_one(run: OpenedRun, share: int, many: int) -> None:
    deaths = 0
    while True:
        before = run.progress.here
        code = await _one(run, share, many)
        counts = await run.process.pool.run(run.rows.counts, run.spec.run_id)
        if code == 0 or run.stop.reason or not (counts["waiting"] + counts["running"]):
            return
        deaths = 1 if run.progress.here > before else deaths + 1
        if deaths >= MAX_DEATHS:
            raise UserError(f"a process of the run has ended {deaths} times with code {code}; see: hermes logs")


async def _one(run: OpenedRun, share: int, many: int) -> int:
    """One process to its end; its exit code."""
    spec = run.spec
    caps = {
        "run_usd": None if spec.run_usd is None else max(0.0, spec.run_usd - run.progress.cost_usd) / many,
        "run_tokens": None if spec.run_tokens is None else max(0, spec.run_tokens - run.progress.tokens) // many,
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
    try:
        await child.write(msgspec.json.encode(order) + b"\n")
        run.stop.listen(child.close_stdin)
        async for line in _lines(child):
            await run.process.pool.run(_take, run, int(line))
            run.tell()
        return await child.wait()
    except (BrokenPipeError, ToolError):
        return 1
    finally:
        child.release()


def _path() -> str:
    """Where this program is imported from, also when that is no place of an installation."""
    return ":".join(place for place in sys.path if place)


async def _lines(child: Child) -> AsyncIterator[bytes]:
    rest = b""
    async for chunk in child.output():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.strip().isdigit():
                yield line


def _take(run: OpenedRun, index: int) -> None:
    found = run.rows.sample(run.spec.run_id, index)
    if found is not None:
        run.take(*found)
