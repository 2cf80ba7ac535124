"""Enter a run and its samples in the store, or find it there; whatever is wrong with it is told before that."""

import contextlib
import fcntl
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import islice
from pathlib import Path

from msgspec.structs import replace

from hermes.batch.dataset import Dataset, Sample, read_dataset
from hermes.batch.distributions import require_distribution
from hermes.batch.opened_run import OnProgress, OpenedRun, RunStop, count
from hermes.batch.output_files import OUTPUTS, OutputFiles
from hermes.batch.run_spec import LASTING, RunProgress, RunSpec, replace_spec
from hermes.batch.sample_run import SampleContext, try_out
from hermes.config import paths
from hermes.config.load import bound_settings
from hermes.config.sections import model as model_section
from hermes.config.settings import Settings
from hermes.disk_trouble import reason_of
from hermes.errors import UserError
from hermes.runtime.setup.process import shared
from hermes.state import owner
from hermes.state.batch_rows import BatchRows, BatchRun
from hermes.tools.environments.command_env import redactor_of
from hermes.typed import convert

log = logging.getLogger(__name__)
BEGIN_AT_ONCE = 5000  # samples that are entered in one transaction
WORKSPACES = "workspaces"


@contextlib.asynccontextmanager
async def opened(
    spec: RunSpec, settings: Settings, stop: RunStop, on_progress: OnProgress, resume: bool
) -> AsyncIterator[OpenedRun]:
    spec = _clean(spec.checked(), settings)
    if not spec.model:
        spec = replace_spec(spec, model=settings.of(model_section.Section).default)
    paths.made(settings.home)
    pool, rows = shared.pool, shared.store(settings).batch_rows
    dataset = await pool.run(read_dataset, Path(spec.dataset), spec.max_samples)
    new = BatchRun(
        run_id=spec.run_id, name=spec.run_name, folder=spec.folder, spec=spec.stored(), started_at=time.time()
    )
    # What is wrong with it is told before anything is written.
    await pool.run(_known, spec, rows, resume)
    ctx = await pool.run(sample_context, new, spec, settings, dataset.sample)
    await try_out(ctx)
    with _alone_in(spec):
        known = await pool.run(_known, spec, rows, resume)  # nobody else can have begun it since
        notes = await pool.run(_changes, spec, known, dataset, rows) if known is not None else []
        files, progress = await pool.run(_enter, known or new, spec, dataset, rows, known is not None)
        if absent := sorted(set(ctx.distribution.toolsets) - ctx.toolsets):
            notes.append(f"these toolsets have no tool here, so no sample has them: {', '.join(absent)}")
        progress.notes = notes
        run = OpenedRun(
            entry=known or new,
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


@contextlib.contextmanager
def _alone_in(spec: RunSpec) -> Iterator[None]:
    """Have the folder of the run for this process alone; whatever ends the process ends that."""
    try:
        Path(spec.folder).mkdir(parents=True, exist_ok=True)
        folder = os.open(spec.folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise UserError(f"cannot make {spec.folder!r}: {reason_of(error)}") from error
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            at_work = f"the run {spec.run_name!r} is at work already; wait for its end, or stop it there"
            raise UserError(at_work) from error
        except OSError as error:  # a file system without locks; the rows still hold each sample for one process
            log.warning("the folder of the run %r cannot be locked: %s", spec.run_name, error)
        yield
    finally:
        os.close(folder)


def _changes(spec: RunSpec, known: BatchRun, dataset: Dataset, rows: BatchRows) -> list[str]:
    """What is not as it was when the run was begun, in words; `UserError` for another dataset."""
    told, other, past = [], 0, 0
    keys = dataset.keys()
    for row in rows.rows(known.run_id):
        key = next(keys, None)
        past += key is None
        other += key is not None and key.digest != row.digest and row.attempt > 0
    begun = str(known.spec.get("dataset", ""))
    if other and begun != spec.dataset:
        raise UserError(
            f"the run {spec.run_name!r} was begun with {begun!r}, and {spec.dataset!r} holds other words at {other} of "
            "its places; begin another run for that"
        )
    if other:
        told.append(f"places of the dataset that hold other words now, and are new samples: {other}")
    if past and spec.max_samples is None:
        told.append(f"samples past the end of the dataset: {past}; what has ended of these stays, the others wait")
    if spec.max_samples is not None:
        told.append(f"only the first {spec.max_samples} samples of the dataset are run (--max-samples)")
    return told


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
