"""Jobs that fall due while a server lives are run by it."""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.config.load import load_settings
from hermes.runtime.setup.process import shared
from hermes.runtime.setup.schedule_setup import job_book
from hermes.schedule.job_order import JobOrder
from tests.surfaces.serve.conftest import WAIT_S, Serve


@pytest.fixture(autouse=True)
async def _shared_is_closed() -> AsyncIterator[None]:
    yield
    await shared.close()


def test_a_server_runs_what_is_due_and_ends_after_it(serve: Serve, environ: dict[str, str], home: Path) -> None:
    (home / "scripts").mkdir()
    (home / "scripts" / "slow.sh").write_text("touch began; sleep 2; touch ended; echo done")
    settings = load_settings(home, environ=environ)
    book = job_book(settings, shared.store(settings).schedule, time.time)
    with serve("--idle", "0.3") as served:
        served.client().event("gateway.ready")
        book.create(JobOrder(schedule="every 2h", script="slow.sh", no_agent=True, name="Slow"))
        book.run_now("Slow")
        until = time.monotonic() + WAIT_S
        while not (home / "began").exists():
            assert time.monotonic() < until, "the job was not run"
            time.sleep(0.02)
        assert book.ledger.ticker(time.time()) is not None
        served.hang_up()
        assert served.process.wait(WAIT_S) == 0  # nobody is there, and yet it has waited for the job
    assert (home / "ended").exists()
    (row,) = (each for each in book.history(None, 10) if each.outcome)
    assert row.outcome == "ok"
    held = book.ledger.rows.read(lambda tx: tx.lease())
    assert held is None or not held.owner  # it was let go, and not only left
