"""The file that `hermes batch export` writes: whole or not at all, and never in the place of what a run needs."""

import re
from collections.abc import Iterable
from pathlib import Path

from hermes.batch.output_files import CHECKPOINT, RECORDS, STATISTICS, TRAJECTORIES
from hermes.batch.replaced_file import disk_told, replaced
from hermes.errors import UserError
from hermes.state.batch_rows import BatchRun

_RUNS_OWN = re.compile(
    "|".join((r"batch_\d+\.jsonl", *map(re.escape, (TRAJECTORIES, RECORDS, CHECKPOINT, STATISTICS))))
)


def require_free(output: Path, runs: Iterable[BatchRun], *, force: bool) -> None:
    """`UserError` unless `output` may be written: there is a folder for it, and nothing in its place that is needed."""
    file = output.resolve()
    if not file.parent.is_dir():
        raise UserError(f"there is no folder {str(output.parent)!r} for {output.name!r}; make it first")
    for run in runs:
        if file == Path(str(run.spec.get("dataset", ""))).resolve():
            raise UserError(f"{str(output)!r} is the dataset of the run {run.name!r}; name another file")
        if file.parent == Path(run.folder).resolve() and _RUNS_OWN.fullmatch(file.name):
            raise UserError(f"{str(output)!r} is a file of the run {run.name!r} itself; name another one")
    if file.is_file() and not force:
        raise UserError(f"{str(output)!r} is there already; name another file, or write over it with --force")


def write_lines(output: Path, lines: Iterable[str]) -> int:
    """Write them; how many there were."""
    file = output.resolve()
    # A pipe or a device cannot be replaced, and is not meant to be.
    is_stream = file.exists() and not file.is_file()
    with disk_told(output), file.open("wb") if is_stream else replaced(file) as out:
        return sum(bool(out.write(f"{line}\n".encode())) for line in lines)
