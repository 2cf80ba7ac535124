"""A run that is at work: how it is asked to stop, and how the ends of its samples are kept."""

import time
from collections.abc import Callable, Sequence

from msgspec import Struct

from hermes.batch.dataset import Dataset
from hermes.batch.output_files import OutputFiles
from hermes.batch.run_spec import RunProgress, RunSpec
from hermes.batch.sample_result import SampleResult
from hermes.config.settings import Settings
from hermes.runtime.setup.process import ProcessParts
from hermes.state.batch_rows import BatchRows, BatchRun, SampleRow

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
