"""The schedule under load: what a tick costs, and whether whoever runs the ticker still answers.

Run: python bench/cron.py tick [JOBS]    (10,000 jobs, 10 of them due: one tick, beside an empty read of the store)
     python bench/cron.py flood [JOBS]   (all due at once: portions, the longest pause of the loop, memory)
     python bench/cron.py start          (a real `hermes cron daemon`: how late a due job begins)
"""

import asyncio
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from zoneinfo import ZoneInfo

from hermes.schedule.decide import after_run
from hermes.schedule.ledger import ClaimedMoment, MomentResult, ScheduleLedger, plan
from hermes.schedule.tick import TickState
from hermes.state import SqliteStore
from hermes.state.schedule_rows import Delivery, Job, Schedule, ScheduleTx
from hermes.tools.calling.pool import DaemonPool

UTC = ZoneInfo("UTC")
NOW = 1_772_439_300.0
ROUNDS = 50
PROBE_S = 0.005


def zone_of(_job: Job) -> ZoneInfo:
    return UTC


def concluded(job: Job) -> tuple[Job, list[Delivery]]:
    return after_run(job, UTC), []


def filled(folder: Path, count: int, due_at: Callable[[int], float]) -> ScheduleLedger:
    """A store with so many jobs, each planned for its time."""
    store = SqliteStore(folder / "state.db")

    def work(tx: ScheduleTx) -> None:
        for number in range(count):
            at = due_at(number)
            schedule = Schedule(kind="interval", at=at - 86_400, seconds=86_400, display="every 1d")
            job = Job(
                id=f"{number:012x}", name="job", schedule=schedule, created_at=NOW, mark=at - 1, prompt="Work. " * 40
            )
            tx.put_job(job)
            plan(tx, job, at)

    store.schedule.write(work)
    return ScheduleLedger(store.schedule, zone_of)


def tick(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger = filled(Path(folder), count, lambda number: NOW + 60 * (number // 10))
        state = TickState(ledger, 90)
        state.tick(NOW - 60)
        costs, floor = [], []
        for number in range(ROUNDS):
            started = time.perf_counter()
            found = state.tick(NOW + 60 * number)
            costs.append(time.perf_counter() - started)
            assert len(found) == 10, len(found)
            for claimed in found:
                state.ended(claimed.moment.id)
                ledger.finish(claimed, MomentResult(outcome="ok"), NOW, concluded)
            started = time.perf_counter()
            ledger.rows.write(lambda tx: tx.lease())
            floor.append(time.perf_counter() - started)
        cost, least = statistics.median(costs) * 1e3, statistics.median(floor) * 1e3
        worst = max(costs) * 1e3
        print(f"{count:,} jobs, 10 due: a tick {cost:.1f} ms (median), {worst:.1f} ms (worst)")
        print(f"an empty write {least:.2f} ms; ratio {cost / least:.1f}")


def flood(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger = filled(Path(folder), count, lambda _number: NOW)
        state, pool = TickState(ledger, 90), DaemonPool()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        gaps: list[float] = []
        ticks: list[float] = []

        async def probe() -> None:
            while True:
                started = time.perf_counter()
                await asyncio.sleep(PROBE_S)
                gaps.append(time.perf_counter() - started - PROBE_S)

        async def main() -> int:
            total = 0
            async with asyncio.TaskGroup() as group:
                watch = group.create_task(probe())
                while found := await timed():
                    total += len(found)
                    for claimed in found:
                        state.ended(claimed.moment.id)
                        await pool.run(ledger.finish, claimed, MomentResult(outcome="ok"), NOW, concluded)
                watch.cancel()
            return total

        async def timed() -> list[ClaimedMoment]:
            started = time.perf_counter()
            found = await pool.run(state.tick, NOW + 1)
            ticks.append(time.perf_counter() - started)
            return found

        started = time.perf_counter()
        total = asyncio.run(main())
        took = time.perf_counter() - started
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        portion, most = statistics.median(ticks) * 1e3, max(ticks) * 1e3
        print(f"{total:,} due at once, in {took:.1f} s: a portion {portion:.1f} ms, at most {most:.1f} ms")
        print(f"the loop was held up {max(gaps) * 1e3:.1f} ms at most; memory grew by {grown:.0f} MB")


def start() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "scripts").mkdir()
        (home / "scripts" / "note.sh").write_text('date +%s.%N >> "$HERMES_HOME/ran"\n')
        environ = {**os.environ, "HERMES_HOME": folder}
        hermes = [sys.executable, "-m", "hermes", "cron"]
        daemon = subprocess.Popen([*hermes, "daemon"], env=environ, stderr=subprocess.DEVNULL)
        subprocess.run([*hermes, "create", "every 1m", "--script", "note.sh", "--no-agent"], env=environ, check=True)
        try:
            time.sleep(190)
        finally:
            daemon.terminate()
            daemon.wait(30)
        rows = SqliteStore(home / "state.db").schedule.read(lambda tx: tx.history(None, 10))
        ran = [float(line) for line in (home / "ran").read_text().split()]
        late = [at - row.due_at for at, row in zip(ran, reversed(rows), strict=False)]
        print(f"every 1m, {len(ran)} runs: began {', '.join(f'{each:.2f}' for each in late)} s after their moments")


if __name__ == "__main__":
    what, *rest = sys.argv[1:] or ["tick"]
    if what == "start":
        start()
    else:
        {"tick": tick, "flood": flood}[what](int(rest[0]) if rest else 10_000)
