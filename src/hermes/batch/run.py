"""Run a dataset through agents: samples side by side on one loop, each with a row, so that any run can go on."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import islice
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from hermes.batch.dataset import Dataset, Sample, read_dataset
from hermes.batch.distributions import require_distribution
from hermes.batch.output_files import OUTPUTS, OutputFiles
from hermes.batch.run_budget import RunBudget
from hermes.batch.run_spec import LASTING, RunProgress, RunReport, RunSpec, replace_spec
from hermes.batch.sample_result import SampleResult, failed
from hermes.batch.sample_run import (
    SampleContext,
    SampleEnd,
    SampleStart,
    run_sample,
    start_sample,
    stop_agents,
    try_out,
)
from hermes.batch.sample_writer import SampleWriter
from hermes.config import paths
from hermes.config.load import bound_settings, load_settings
from hermes.config.sections import model as model_section
from hermes.config.settings import Settings
from hermes.disk_trouble import reason_of
from hermes.errors import UserError
from hermes.runtime.setup.process import ProcessParts, shared
from hermes.state import owner
from hermes.state.batch_rows import BatchRows, BatchRun, SampleRow
from hermes.tools.environments.command_env import redactor_of
from hermes.typed import convert

BEGIN_AT_ONCE = 5000  # samples that are entered in one transaction
TAKEN_AT_ONCE = 32  # samples that are made ready together
CHECKPOINT_EVERY_S = 10.0
TELL_EVERY_S = 1.0
WORKSPACES = "workspaces"
INTERRUPTED = "it was interrupted"
OnProgress = Callable[[RunProgress], None]


class RunStop:
    """How a run is asked to end before its samples have: drain first, then stop what is under way."""

    def __init__(self) -> None:
        self.reason = ""
        self.is_hard = False
        self._listeners: list[Callable[[], None]] = []

    def drain(self, reason: str = INTERRUPTED) -> None:
        """Begin no further sample; those under way come to their end."""
        self.reason = self.reason or reason
        self._tell()

    def halt(self, reason: str = INTERRUPTED) -> None:
        """Interrupt those under way, too; they go on from their last commit when the run is resumed."""
        self.reason, self.is_hard = self.reason or reason, True
        self._tell()

    def listen(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()


class OpenedRun(Struct, kw_only=True):
    """A run that is entered in the store and has its folder."""

    entry: BatchRun
    spec: RunSpec
    settings: Settings
    dataset: Dataset
    rows: BatchRows
    files: OutputFiles
    progress: RunProgress
    started: float
    stop: RunStop
    on_progress: OnProgress
    process: ProcessParts
    tell_ended: Callable[[int], None] | None = None  # in a process that works for another one, which writes the files

    def ended(self, results: Sequence[SampleResult]) -> None:
        """Keep how samples ended: their rows first, then their lines. One that had ended before changes nothing."""
        ended = [result for result in results if result.is_ended]
        for result in results:
            if not result.is_ended:
                self.rows.put_back(self.spec.run_id, result.row.index)
        are_new = self.rows.finish(self.spec.run_id, *((result.row, result.body) for result in ended))
        for result, is_new in zip(ended, are_new, strict=True):
            if not is_new:
                continue
            if self.tell_ended is not None:
                self.tell_ended(result.row.index)
            else:
                self.take(result.row, result.body)

    def take(self, row: SampleRow, body: bytes | None) -> None:
        """Write the line of a sample whose end is in the store."""
        if body is not None:
            self.files.append(row.index, body)
        self.progress.here += 1
        count(self.progress, row)

    def tell(self) -> None:
        self.progress.elapsed_s = time.time() - self.started
        self.on_progress(self.progress)


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
    async with _opened(spec, settings, stop or RunStop(), on_progress, resume) as run:
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


def count(progress: RunProgress, row: SampleRow) -> None:
    """Take a sample that has ended into the progress."""
    if row.state == "done":
        progress.done += 1
    elif row.state == "dropped":
        progress.dropped += 1
    elif row.state == "failed":
        progress.failed += 1
    else:
        return
    progress.tokens += row.facts.get("tokens", 0)
    cost = row.facts.get("cost_usd")
    progress.cost_usd += cost or 0.0
    progress.unpriced += cost is None


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
        run.tell()
        if time.monotonic() - told >= CHECKPOINT_EVERY_S:
            told = time.monotonic()
            await run.process.pool.run(run.files.checkpoint)


def sample_context(
    entry: BatchRun, spec: RunSpec, settings: Settings, sample: Callable[[int], Sample]
) -> SampleContext:
    """What the samples of a run share in this process; `UserError` when the distribution has no tool here."""
    from hermes.model_tools import get_all_tool_names

    try:
        distribution = require_distribution(spec.distribution, settings.home)
    except ValueError as error:
        raise UserError(str(error)) from error
    flags = {"spending.session_usd": spec.sample_usd, "spending.session_tokens": spec.sample_tokens}
    given = {name: value for name, value in flags.items() if value is not None}
    settings = settings.with_flags(given) if given else settings
    here = frozenset(name for name in distribution.toolsets if _has_tool(name, settings))
    if not here:
        raise UserError(
            f"none of the toolsets of {spec.distribution!r} has a tool here: {', '.join(distribution.toolsets)}"
        )
    return SampleContext(
        sample=sample,
        run=entry,
        spec=spec,
        settings=settings,
        store=shared.store(settings),
        pool=shared.pool,
        distribution=distribution,
        known_tools=frozenset(get_all_tool_names()),
        toolsets=here,
        agents={},
        workspaces=Path(spec.folder) / WORKSPACES,
    )


def _has_tool(toolset: str, settings: Settings) -> bool:
    from hermes.model_tools import get_tool_definitions
    from hermes.toolsets import validate_toolset

    with bound_settings(settings):
        return validate_toolset(toolset) and bool(get_tool_definitions([toolset], quiet_mode=True))


@contextlib.asynccontextmanager
async def _opened(
    spec: RunSpec, settings: Settings, stop: RunStop, on_progress: OnProgress, resume: bool
) -> AsyncIterator[OpenedRun]:
    spec = _clean(spec.checked(), settings)
    if not spec.model:
        spec = replace_spec(spec, model=settings.of(model_section.Section).default)
    paths.made(settings.home)
    pool, rows = shared.pool, shared.store(settings).batch_rows
    dataset = await pool.run(read_dataset, Path(spec.dataset), spec.max_samples)
    known = await pool.run(_known, spec, rows, resume)
    entry = known or BatchRun(
        run_id=spec.run_id, name=spec.run_name, folder=spec.folder, spec=spec.stored(), started_at=time.time()
    )
    # What is wrong with it is told before anything is written.
    ctx = await pool.run(sample_context, entry, spec, settings, dataset.sample)
    await try_out(ctx)
    files, progress = await pool.run(_enter, entry, spec, dataset, rows, known is not None)
    progress.absent = sorted(set(ctx.distribution.toolsets) - ctx.toolsets)
    run = OpenedRun(
        entry=entry,
        spec=spec,
        settings=settings,
        dataset=dataset,
        rows=rows,
        files=files,
        progress=progress,
        started=time.time(),
        stop=stop,
        on_progress=on_progress,
        process=shared,
    )
    run.tell()
    yield run


def _clean(spec: RunSpec, settings: Settings) -> RunSpec:
    """The spec without secrets in its words, which are stored and sent: what is sent is then what the record has."""
    redactor = redactor_of(settings, spec.api_key)
    words = {"ephemeral_system_prompt": spec.ephemeral_system_prompt, "prefill_messages": spec.prefill_messages}
    return replace_spec(spec, **redactor.redact_all(words))


def _known(spec: RunSpec, rows: BatchRows, resume: bool) -> BatchRun | None:
    """The run that is to go on; None for a new one. `UserError` when it may do neither."""
    folder, known = Path(spec.folder), rows.find(spec.run_id)
    if (folder / WORKSPACES).is_symlink():
        raise UserError(f"{str(folder / WORKSPACES)!r} is a link; the folders of samples are made and removed there")
    if known is None:
        if found := next((name for name in OUTPUTS if (folder / name).exists()), ""):
            raise UserError(
                f"{spec.folder!r} holds files of another run ({found}); choose another name, or move them away"
            )
        return None
    if not resume:
        raise UserError(
            f"there is a run {spec.run_name!r} in {spec.folder!r} already; go on with it (--resume, "
            f"hermes batch resume {spec.run_name}), or choose another name"
        )
    begun = convert(known.spec, RunSpec)
    for name in LASTING:
        if (was := getattr(begun, name)) != (now := getattr(spec, name)):
            raise UserError(
                f"the run {spec.run_name!r} was begun with {name} {was!r}, and cannot go on with {now!r}; "
                "begin another run for that"
            )
    refuse_at_work(rows, known)
    return known


def _enter(
    entry: BatchRun, spec: RunSpec, dataset: Dataset, rows: BatchRows, goes_on: bool
) -> tuple[OutputFiles, RunProgress]:
    """Enter the run and its samples."""
    try:
        Path(spec.folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make {spec.folder!r}: {reason_of(error)}") from error
    files, progress = OutputFiles(spec, rows), RunProgress(total=len(dataset))
    entry = replace(entry, spec=spec.stored())
    keys = dataset.keys()
    while chunk := list(islice(keys, BEGIN_AT_ONCE)):
        rows.begin(entry, chunk)
    if goes_on:
        rows.again(spec.run_id)
        files.mend()
    for row in rows.rows(spec.run_id):
        if row.index < len(dataset):
            count(progress, row)
    return files, progress


def refuse_at_work(rows: BatchRows, run: BatchRun) -> None:
    """Two that write the files of one run would spoil them for each other."""
    if not rows.counts(run.run_id)["running"]:
        return
    me = owner.this_process()
    for row in rows.rows(run.run_id):
        if row.state == "running" and row.owner != me and owner.is_alive_here(row.owner):
            who = owner.described(row.owner)
            raise UserError(f"the run {run.name!r} is at work already ({who}); wait for its end, or stop it there")


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


def _report(run: OpenedRun) -> RunReport:
    rows, progress = run.rows, run.progress
    total = max(len(run.dataset), sum(rows.counts(run.spec.run_id).values()))
    told = run.files.finish(run.started, total)
    is_complete = progress.ended >= progress.total
    if is_complete:
        rows.ended(run.spec.run_id, time.time())
    with contextlib.suppress(OSError):
        (run.files.folder / WORKSPACES).rmdir()  # when nothing is left in it
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
