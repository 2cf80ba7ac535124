"""Run a dataset through agents: samples side by side on one loop, each with a row, so that any run can go on."""

import asyncio
import contextlib
import shutil
import time
from collections import deque

from hermes.batch.opened_run import OnProgress, OpenedRun, RunStop
from hermes.batch.run_budget import RunBudget
from hermes.batch.run_entry import WORKSPACES, opened, sample_context
from hermes.batch.run_spec import RunReport, RunSpec
from hermes.batch.sample_result import SampleResult, failed
from hermes.batch.sample_run import SampleContext, SampleEnd, SampleStart, run_sample, start_sample, stop_agents
from hermes.batch.sample_writer import SampleWriter
from hermes.config.load import load_settings
from hermes.config.settings import Settings
from hermes.state import owner
from hermes.state.batch_rows import ENDED

TAKEN_AT_ONCE = 32  # samples that are made ready together
CHECKPOINT_EVERY_S = 10.0
TELL_EVERY_S = 1.0


async def run_batch(
    spec: RunSpec,
    *,
    resume: bool = False,
    settings: Settings | None = None,
    stop: RunStop | None = None,
    on_progress: OnProgress = lambda _: None,
    on: str = "here",
) -> RunReport:
    """Run what is left of `spec` and write its files. `UserError` when it cannot begin.

    `on` is "here", or "ray" for the cluster that `RAY_ADDRESS` names. The report tells what came of it.
    """
    settings = settings or load_settings()
    if on == "ray":
        from hermes.batch.ray_cluster import require_ray  # for who has a cluster

        require_ray()
    async with opened(spec, settings, stop or RunStop(), on_progress, resume) as run:
        try:
            async with asyncio.TaskGroup() as group:
                ticking = group.create_task(_tick(run), name="batch checkpoints")
                await _run_on(run, on)
                ticking.cancel()
        except BaseExceptionGroup as group_error:
            raise _first(group_error) from group_error
        return await run.process.pool.run(_report, run)


def _first(error: BaseException) -> BaseException:
    """What went wrong, without the tasks that it went wrong in."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _run_on(run: OpenedRun, on: str) -> None:
    if on == "ray":
        from hermes.batch.ray_cluster import run_on_ray  # for who has a cluster

        await run_on_ray(run)
    elif run.spec.processes > 1:
        from hermes.batch.process_group import run_in_processes  # for who asks

        await run_in_processes(run)
    else:
        await run_here(run)


async def run_here(run: OpenedRun) -> None:
    """Run what waits in this process, `num_workers` at once."""
    spent = await run.process.pool.run(run.rows.spending, run.spec.run_id)
    budget = RunBudget(run.spec, run.settings, spent, run.stop)
    ctx = sample_context(run.entry, run.spec, run.settings, run.dataset.sample)
    ctx.sink = budget.sink()
    ctx.hold = lambda index, attempt, session_id: run.rows.hold(run.spec.run_id, index, attempt, session_id)
    run.stop.listen(lambda: stop_agents(ctx) if run.stop.is_hard else None)
    writer = SampleWriter(run, ctx)
    under_way: set[int] = set()  # taken from the store and not handed to the writer
    ready: deque[SampleStart | SampleResult] = deque()
    lock = asyncio.Lock()  # guards `ready`: one asks the store for more, the others wait for what it gets

    async def next_start() -> SampleStart | SampleResult | None:
        async with lock:
            if not ready and not run.stop.reason:
                ready.extend(await run.process.pool.run(_taken, run, ctx))
                under_way.update(one.row.index for one in ready)
            return None if run.stop.reason or not ready else ready.popleft()

    async def worker() -> None:
        while (start := await next_start()) is not None:
            run.progress.running += 1
            try:
                await writer.put(await _end_of(ctx, start))
                under_way.discard(start.row.index)
            finally:
                run.progress.running -= 1

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(writer.write_all(), name="batch results")
            async with asyncio.TaskGroup() as workers:
                for number in range(min(run.spec.num_workers, len(run.dataset))):
                    workers.create_task(worker(), name=f"batch worker {number}")
            await writer.close()
    finally:
        for index in sorted(under_way | writer.unwritten):
            await asyncio.shield(run.process.pool.run(run.rows.put_back, run.spec.run_id, index))


def _taken(run: OpenedRun, ctx: SampleContext) -> list[SampleStart | SampleResult]:
    """The next samples, ready to begin; one that cannot has its end here."""
    found: list[SampleStart | SampleResult] = []
    for row in run.rows.take(run.spec.run_id, min(run.spec.num_workers, TAKEN_AT_ONCE), len(run.dataset)):
        try:
            found.append(start_sample(ctx, row))
        except Exception as error:  # noqa: BLE001 - the border of a sample; `failed` logs it
            found.append(failed(row, error))
    return found


async def _end_of(ctx: SampleContext, start: SampleStart | SampleResult) -> SampleEnd | SampleResult:
    if isinstance(start, SampleResult):
        return start
    try:
        return await run_sample(ctx, start)
    except Exception as error:  # noqa: BLE001 - the border of a sample: its fault ends no other; `failed` logs it
        return failed(start.row, error)


async def _tick(run: OpenedRun) -> None:
    told = time.monotonic()
    while True:
        await asyncio.sleep(TELL_EVERY_S)
        if run.spec.processes > 1:  # who knows by itself what runs is this process alone
            counts = await run.process.pool.run(run.rows.counts, run.spec.run_id)
            run.progress.running = min(counts["running"], run.spec.num_workers)
        run.tell()
        if time.monotonic() - told >= CHECKPOINT_EVERY_S:
            told = time.monotonic()
            await run.process.pool.run(run.files.checkpoint)


def _held(run: OpenedRun) -> str:
    """Who has samples that this run did not get."""
    held = [row for row in run.rows.rows(run.spec.run_id) if row.state == "running"]
    if not held:
        return ""
    who = ", ".join(sorted({owner.described(row.owner) for row in held}))
    return (
        f"{len(held)} of its samples are held by {who}; if that is gone, they are free half a minute after it was "
        "last heard of"
    )


def _sweep(run: OpenedRun) -> None:
    """Remove the folders of samples that have ended, should a kill have come between an end and that."""
    place = run.files.folder / WORKSPACES
    if run.spec.keeps_workspaces or not place.is_dir():
        return
    for folder in place.iterdir():
        found = run.rows.sample(run.spec.run_id, int(folder.name)) if folder.name.isdecimal() else None
        if found is not None and found[0].state in ENDED:
            shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        place.rmdir()  # when nothing is left in it


def _report(run: OpenedRun) -> RunReport:
    rows, progress = run.rows, run.progress
    total = max(len(run.dataset), sum(rows.counts(run.spec.run_id).values()))
    told = run.files.finish(run.started, total)
    is_complete = progress.ended >= progress.total
    if is_complete:
        rows.ended(run.spec.run_id, time.time())
    _sweep(run)
    run.tell()
    return RunReport(
        run_id=run.spec.run_id,
        folder=run.files.folder,
        progress=progress,
        bad_lines=run.dataset.bad,
        bad_line_count=run.dataset.bad_count,
        stopped="" if is_complete else run.stop.reason,
        held="" if is_complete or run.stop.reason else _held(run),
        reasons=told["dropped"],
    )
