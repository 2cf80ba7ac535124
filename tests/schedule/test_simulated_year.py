"""The law of the schedule: every due moment has exactly one row, and none is run twice, whatever happens."""

import os
from pathlib import Path

import pytest

from hermes.state import SqliteStore
from tests.schedule.simulated_year import SimulatedYear
from tests.state.memory_schedule import MemoryScheduleRows

IS_FULL = bool(os.environ.get("HERMES_TEST_FULL"))


def test_a_year_of_jobs_is_accounted_for_moment_by_moment() -> None:
    year = SimulatedYear(MemoryScheduleRows(), seed=1, jobs=200)
    year.run()
    total = year.check()
    assert 15_000 < total < 30_000
    assert min(year.events[name] for name in ("kill", "jump", "pause", "went on", "stall", "taken over")) > 5, (
        year.events
    )


@pytest.mark.parametrize("seed", range(2, 12 if IS_FULL else 3))
def test_other_years_are_as_well(seed: int) -> None:
    year = SimulatedYear(MemoryScheduleRows(), seed=seed, jobs=30)
    year.run()
    year.check()


def test_a_year_on_the_store_of_a_home(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db", durability="process")
    year = SimulatedYear(store.schedule, seed=3, jobs=200 if IS_FULL else 10)
    year.run()
    year.check()
    store.close_sync()
