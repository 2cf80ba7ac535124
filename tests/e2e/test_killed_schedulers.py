"""Real schedulers on one store, killed again and again: each due moment has one row, and none is run twice."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import hermes
from hermes.config.load import load_settings
from hermes.runtime.setup.schedule_setup import job_book
from hermes.schedule.decide import first_plan
from hermes.schedule.job_book import JobBook
from hermes.schedule.ledger import plan
from hermes.state import SqliteStore
from hermes.state.schedule_rows import DueMoment, Job, Schedule, ScheduleTx

KILLS = 300 if os.environ.get("HERMES_TEST_FULL") else 5
SOURCE = Path(hermes.__file__).parents[1]
WAIT_S = 120.0


class Schedulers:
    """Processes of `hermes cron daemon` in one home."""

    def __init__(self, home: Path) -> None:
        self._environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "HERMES_HOME": str(home),
            "PYTHONPATH": str(SOURCE),
        }
        self._log = (home / "daemons.log").open("wb")
        self.alive: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        argv = [sys.executable, "-m", "hermes", "cron", "daemon"]
        self.alive.append(subprocess.Popen(argv, env=self._environ, stdout=self._log, stderr=self._log))

    def kill(self, chance: random.Random) -> None:
        process = self.alive.pop(chance.randrange(len(self.alive)))
        process.send_signal(signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        for process in self.alive:
            process.terminate()
        for process in self.alive:
            process.wait(WAIT_S)
        self._log.close()


def add_jobs(book: JobBook, start: float) -> list[Job]:
    """Jobs that are due each second: nobody can ask for them, but they make many moments in a short time."""
    schedule = Schedule(kind="interval", at=start, seconds=1, display="each second")
    jobs = [
        Job(
            id=f"{number:012x}",
            name=f"job {number}",
            schedule=schedule,
            created_at=start,
            mark=start,
            script="note.sh",
            no_agent=True,
            catch_up="all",
            overlap="parallel",
        )
        for number in range(3)
    ]

    def work(tx: ScheduleTx) -> None:
        for job in jobs:
            tx.put_job(job)
            at = first_plan(job, book.checks.zone)
            assert at is not None
            plan(tx, job, at)

    book.ledger.rows.write(work)
    return jobs


def wait_for_rest(book: JobBook) -> None:
    """Until nothing of what was claimed is open."""
    deadline = time.monotonic() + WAIT_S
    while book.ledger.rows.read(lambda tx: tx.in_state("claimed")):
        assert time.monotonic() < deadline, "runs were left behind"
        time.sleep(0.1)


def test_no_moment_is_lost_or_run_twice_however_often_schedulers_are_killed(tmp_path: Path) -> None:
    chance = random.Random(33)
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "note.sh").write_text('echo "$HERMES_CRON_JOB $HERMES_CRON_DUE_AT" >> "$HERMES_HOME/ran"\n')
    (tmp_path / "config.yaml").write_text("cron: {pause_after_failures: 0}\ntimezone: UTC\n")
    store = SqliteStore(tmp_path / "state.db")
    book = job_book(load_settings(tmp_path, environ={}), store.schedule, time.time)
    jobs = add_jobs(book, float(int(time.time())))
    schedulers = Schedulers(tmp_path)
    try:
        schedulers.start()
        schedulers.start()
        for _ in range(KILLS):
            time.sleep(chance.choice([0.05, 0.4, 1.5]))  # when a kill comes is what this is about
            schedulers.kill(chance)
            schedulers.start()
        schedulers.start()
        time.sleep(2)
        for job in jobs:
            book.pause(job.id)
        wait_for_rest(book)
    finally:
        schedulers.stop()
    ran = Counter((tmp_path / "ran").read_text().splitlines())
    assert max(ran.values()) == 1, "a moment was run twice"
    outcomes: Counter[str] = Counter()
    for job in jobs:
        outcomes += check(job, book.history(job.id, 1_000_000), ran)
    store.close_sync()
    assert outcomes["silent"] > KILLS, outcomes
    assert sum(outcomes.values()) >= len(ran)


def check(job: Job, rows: list[DueMoment], ran: Counter[str]) -> Counter[str]:
    """Each second from the first to the last has its one row, and who says that it ran has run."""
    assert {row.state for row in rows} <= {"done", "skipped"}
    seconds = Counter(second for row in rows for second in range(int(row.due_at), int(row.last_at) + 1))
    assert set(seconds.values()) == {1}
    assert sorted(seconds) == list(range(int(job.mark) + 1, max(seconds) + 1))
    for row in rows:
        if row.state == "done" and row.outcome != "error":
            assert ran[f"{job.id} {row.due_at:.0f}"] == 1, row
        elif row.state == "done":
            assert "not known" in row.error, row
    return Counter(row.outcome or row.state for row in rows)
