"""One process of a run that several share: `python -m hermes.batch.worker`, told on stdin what to do.

It says the number of each sample on stdout when its end is stored, and last why it stopped, should anything be left.
When stdin ends, whoever asked for the work wants no more of it: samples under way come to their end, and no other is
begun. TERM stops those, too.
"""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

from hermes.batch.dataset import read_dataset
from hermes.batch.opened_run import OpenedRun, RunStop
from hermes.batch.output_files import OutputFiles
from hermes.batch.process_group import STOPPED, WorkerOrder
from hermes.batch.run import run_here
from hermes.batch.run_spec import RunProgress, RunSpec
from hermes.config.load import load_settings
from hermes.runtime.setup.process import shared
from hermes.typed import convert, from_json

ASKED = "it was asked to"


async def work(order: WorkerOrder) -> None:
    """Run what waits, until nothing does."""
    settings = load_settings(flags=order.flags)
    spec = convert(order.spec, RunSpec)
    rows = shared.store(settings).batch_rows
    entry = rows.find(order.run_id)
    assert entry is not None
    run = OpenedRun(
        entry=entry,
        spec=spec,
        settings=settings,
        dataset=read_dataset(Path(spec.dataset), spec.max_samples),
        rows=rows,
        files=OutputFiles(spec, rows),
        progress=RunProgress(),
        started=time.time(),
        stop=RunStop(),
        on_progress=lambda _: None,
        process=shared,
        tell_ended=_say,
    )
    loop = asyncio.get_running_loop()
    loop.add_reader(0, lambda: None if os.read(0, 1) else _end(loop, run))
    loop.add_signal_handler(signal.SIGTERM, run.stop.halt, ASKED)
    try:
        await run_here(run)
    finally:
        loop.remove_reader(0)
        await shared.close()
    if run.stop.reason not in ("", ASKED):
        _say(f"{STOPPED}{run.stop.reason}")


def _end(loop: asyncio.AbstractEventLoop, run: OpenedRun) -> None:
    loop.remove_reader(0)
    run.stop.drain(ASKED)


def _say(word: object) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    # Unbuffered: what follows the first line is for the loop.
    with open(0, "rb", buffering=0, closefd=False) as told:
        first = told.readline()
    asyncio.run(work(from_json(first, WorkerOrder)))
