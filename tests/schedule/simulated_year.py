"""A year of the schedule in a few seconds: jobs, three schedulers that crash, and a clock that jumps.

What ought to be due is worked out here a second time, minute by minute and without the code under test: each wall-clock
minute that the clocks really show, and for a gap the minute that ends it.
"""

import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from hermes.schedule.decide import PAUSED, after_run, first_plan
from hermes.schedule.grammar import parse_schedule
from hermes.schedule.ledger import ClaimedMoment, MomentResult, ScheduleLedger, drop_plan, pass_until, plan
from hermes.schedule.tick import TickState
from hermes.state.schedule_rows import Delivery, DueMoment, Job, ScheduleRows, ScheduleTx

START = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
END = datetime(2027, 1, 1, tzinfo=UTC).timestamp()
ZONES = ("Europe/Berlin", "America/New_York", "UTC", "Australia/Lord_Howe")
DAY_S = 86_400


def zone_of(job: Job) -> ZoneInfo:
    return ZoneInfo(job.timezone)


def schedules(chance: random.Random) -> Iterator[str]:
    """Words for jobs of a year: some twenty thousand moments in all."""
    hour, minute = chance.randrange(24), chance.randrange(60)
    while True:
        yield f"{minute} {hour} * * *"
        yield f"{minute} 2 * * *"  # where the clocks are changed
        yield f"30 1,2,3 {chance.randrange(1, 29)} * *"
        yield f"{minute} {hour} * * {chance.choice(['mon-fri', '0', '2-4', 'sat,sun'])}"
        yield f"every {chance.choice([2, 3, 5, 7])}d"
        yield f"every {chance.choice([30, 50, 100])}h"
        yield f"{minute} {hour} 1,15 * {chance.randrange(7)}"
        yield f"{chance.randrange(1, 300)}d"
        yield f"{minute} {hour} {chance.randrange(1, 32)} * *"
        yield f"0 0 {chance.randrange(1, 29)} * *"
        yield f"every {chance.choice([10, 20])}d"
        hour, minute = chance.randrange(24), chance.randrange(60)


class SimulatedYear:
    """The world: a clock that may be wrong, schedulers that may die, and what was run."""

    def __init__(self, rows: ScheduleRows, seed: int, jobs: int) -> None:
        self.rows = rows
        self.chance = random.Random(seed)
        self.now = START
        self.is_calm = False
        self.alive: set[str] = set()
        self.schedulers: list[TickState] = []
        self.stalled: set[TickState] = set()  # stopped for a while: their time goes on without them
        self.under_way: list[tuple[TickState, ClaimedMoment, float]] = []
        self.ran: Counter[tuple[str, float]] = Counter()
        self.begun: Counter[tuple[str, float, int]] = Counter()
        self.events: Counter[str] = Counter()
        self._names = 0
        words = schedules(self.chance)
        self.jobs = [self._add(number, next(words)) for number in range(jobs)]
        for _ in range(3):
            self._start_one()

    def _add(self, number: int, text: str) -> Job:
        zone = self.chance.choice(ZONES)
        job = Job(
            id=f"{number:012x}",
            name=text,
            schedule=parse_schedule(text, START, ZoneInfo(zone)),
            created_at=START,
            mark=START,
            timezone=zone,
            catch_up=self.chance.choice(["once", "once", "skip", "all"]),
            overlap=self.chance.choice(["skip", "queue", "parallel"]),
            jitter_s=self.chance.choice([0, 0, 300]),
            prompt="x",
        )

        def work(tx: ScheduleTx) -> None:
            tx.put_job(job)
            if (at := first_plan(job, zone_of(job))) is not None:
                plan(tx, job, at)

        self.rows.write(work)
        return job

    def _start_one(self) -> None:
        self._names += 1
        name = f"sim:{self._names}:1"
        self.alive.add(name)
        ledger = ScheduleLedger(self.rows, zone_of, owner=name, is_alive=lambda owner: owner in self.alive)
        self.schedulers.append(TickState(ledger, history_days=10_000))

    def run(self) -> None:
        """Let the year pass, often just to the next moment, now and then for hours or days."""
        while self.now < END:
            self._happening()
            self._round()
            self._finish()
            self.now = self._next_time()
        self._settle()

    def _next_time(self) -> float:
        start = self.rows.read(lambda tx: tx.next_start())
        if self.chance.random() < 0.9 and start is not None and self.now < start < self.now + DAY_S / 4:
            return start + self.chance.choice([0, 0.4, 2])
        return self.now + self.chance.choices([7, 61, 600, 3_600, 40_000, 3 * DAY_S], [1, 2, 4, 20, 0.5, 0.05])[0]

    def _settle(self) -> None:
        """The end: everybody is there, nobody crashes, and all that is due and was resumed gets its row."""
        self.now, self.is_calm = END, True
        self.stalled.clear()
        self._drop_lost()
        for job in self.jobs:
            self._resume(job.id)
        self.rows.write(_without_jitter)
        while len(self.schedulers) < 1:
            self._start_one()
        for _ in range(10_000):
            self._round()
            if not self.under_way and not self.rows.read(lambda tx: tx.due(END, 1)):
                return
            self._finish(everything=True)
            self.rows.write(_without_jitter)  # nor does one wait for another
        raise AssertionError("the year does not come to its end")

    # -- what happens --------------------------------------------------------------------------------------------------

    def _happening(self) -> None:
        chance = self.chance
        if chance.random() < 0.01 and self.schedulers:
            self._kill(chance.choice(self.schedulers))
        if chance.random() < 0.02 and len(self.schedulers) < 3:
            self._start_one()
        if chance.random() < 0.005:
            self._pause(chance.choice(self.jobs).id)
        if chance.random() < 0.01:
            self._resume(chance.choice(self.jobs).id)
        if chance.random() < 0.002:
            self._jump()
        if chance.random() < 0.005 and self.schedulers:
            self.events["stall"] += 1
            self.stalled.add(chance.choice(self.schedulers))
        if chance.random() < 0.02 and self.stalled:
            self.stalled.clear()
            self._drop_lost()

    def _drop_lost(self) -> None:
        """Whoever was stopped for a while learns what others have taken over, and lets it go."""
        for state in self.schedulers:
            lost = set(state.lost(self.now))
            self.events["taken over"] += len(lost)
            for moment_id in lost:
                state.ended(moment_id)
            self.under_way = [each for each in self.under_way if each[0] is not state or each[1].moment.id not in lost]

    def _jump(self) -> None:
        """Somebody sets the clock: a little, or to another month and back."""
        self.events["jump"] += 1
        if self.chance.random() < 0.5:
            self.now = max(START, self.now - self.chance.choice([90, 3_600, 2 * DAY_S]))
            return
        true = self.now
        self.now = min(END - 1, self.now + self.chance.choice([3_600, 20 * DAY_S]))
        self._round()
        self._finish()
        self.now = true + 60

    def _kill(self, state: TickState) -> None:
        self.events["kill"] += 1
        self.alive.discard(state.ledger.owner)
        self.schedulers.remove(state)
        self.stalled.discard(state)
        self.under_way = [each for each in self.under_way if each[0] is not state]

    def _pause(self, job_id: str) -> None:
        def work(tx: ScheduleTx) -> None:
            job = tx.job(job_id)
            if job is not None and job.state == "scheduled":
                tx.put_job(replace(job, state="paused"))
                drop_plan(tx, job_id)

        self.events["pause"] += 1
        self.rows.write(work)

    def _resume(self, job_id: str) -> None:
        def work(tx: ScheduleTx) -> None:
            job = tx.job(job_id)
            if job is None or job.state != "paused":
                return
            moved = replace(pass_until(tx, job, self.now, PAUSED, zone_of(job)), state="scheduled")
            at = first_plan(moved, zone_of(job))
            tx.put_job(moved if at is not None else replace(moved, state="completed"))
            if at is not None:
                plan(tx, moved, at)

        self.rows.write(work)

    # -- schedulers ----------------------------------------------------------------------------------------------------

    def _round(self) -> None:
        """All that live say so, as they do every few seconds, and then look at the clock."""
        for state in self.schedulers:
            assert state in self.stalled or not state.lost(self.now)
        for state in list(self.schedulers):
            self._tick(state)

    def _tick(self, state: TickState) -> None:
        if state in self.stalled:
            return
        for claimed in state.tick(self.now):
            moment, held = claimed.moment, claimed
            if not moment.phase:
                self.begun[moment.job_id, moment.due_at, moment.tries] += 1
            else:
                self.events["went on"] += 1
            if not self.is_calm and self.chance.random() < 0.005:  # killed between the claim and the run
                self._kill(state)
                return
            if not moment.phase:
                reached = state.ledger.reach(claimed, "agent", f"cron_{moment.job_id}_{moment.due_at:.0f}")
                assert reached is not None
                self.ran[moment.job_id, moment.due_at] += 1
                held = reached
            self.under_way.append((state, held, self.now + self.chance.choice([1, 60, 4_000, 90_000])))

    def _finish(self, *, everything: bool = False) -> None:
        ready = [each for each in self.under_way if everything or (each[2] <= self.now and each[0] not in self.stalled)]
        self.under_way = [each for each in self.under_way if each not in ready]
        for state, claimed, _ in ready:
            ok = state.ledger.finish(claimed, MomentResult(outcome="ok"), self.now, _concluded)
            assert ok
            state.ended(claimed.moment.id)

    # -- the law -----------------------------------------------------------------------------------------------------

    def check(self) -> int:
        """Each due moment has its one row, none was run twice; how many there were."""
        assert all(count == 1 for count in self.ran.values())
        total = 0
        for job in self.jobs:
            rows = self._history(job.id)
            wanted = due_by_hand(job)
            covered = Counter(moment for row in rows for moment in _moments(row, wanted))
            assert covered == Counter(wanted), (job, set(wanted) ^ set(covered))
            assert sum(row.count for row in rows) == len(wanted), job
            done = {(row.job_id, row.due_at) for row in rows if row.state == "done"}
            assert done == {key for key in self.ran if key[0] == job.id}
            total += len(wanted)
        return total

    def _history(self, job_id: str) -> list[DueMoment]:
        return self.rows.read(lambda tx: tx.history(job_id, 100_000))


def _without_jitter(tx: ScheduleTx) -> None:
    for row in tx.in_state("planned"):
        if row.due_at <= END:
            tx.put_moment(replace(row, start_at=row.due_at))


def _concluded(job: Job) -> tuple[Job, list[Delivery]]:
    return after_run(job, zone_of(job)), []


def _moments(row: DueMoment, wanted: list[float]) -> list[float]:
    if row.state == "done":
        return [row.due_at]
    assert row.state == "skipped", row
    assert row.reason
    return [at for at in wanted if row.due_at <= at <= row.last_at]


def due_by_hand(job: Job) -> list[float]:
    """Every due moment of the year after the job was made, without the code under test."""
    schedule = job.schedule
    if schedule.kind == "once":
        return [schedule.at] if schedule.at <= END else []
    if schedule.kind == "interval":
        return [float(at) for at in range(int(START) + schedule.seconds, int(END) + 1, schedule.seconds)]
    return sorted({at for at in _by_clock(schedule.expr, ZoneInfo(job.timezone)) if START < at <= END})


def _by_clock(expr: str, zone: ZoneInfo) -> Iterator[float]:
    minute, hour, *_ = expr.split()
    hours = set(range(24)) if hour == "*" else set(map(int, hour.split(",")))
    usual, odd = _shown(zone.key)
    for at, wall in usual:
        later = (int(minute) - wall.minute) % 60
        shown = wall + timedelta(minutes=later)
        if shown.hour in hours and _is_day(expr, shown):
            yield at + 60.0 * later
    for at, wall in odd:
        if wall.minute == int(minute) and wall.hour in hours and _is_day(expr, wall):
            yield at


Shown = list[tuple[float, datetime]]


@cache
def _shown(zone: str) -> tuple[Shown, Shown]:
    """What the clock of a place shows: each hour of the year, and around its changes each minute.

    Of a minute that it shows twice the first counts; one that it skips is due when it goes on.
    """
    place = ZoneInfo(zone)
    hours = range(int(START) - DAY_S, int(END) + 3_600, 3_600)
    offsets = [datetime.fromtimestamp(at, place).utcoffset() for at in hours]
    usual: Shown = []
    odd: Shown = []
    latest: datetime | None = None
    for number, at in enumerate(hours):
        wall = datetime.fromtimestamp(at, place).replace(tzinfo=None, fold=0)
        if len(set(offsets[max(0, number - 3) : number + 4])) == 1:
            usual.append((float(at), wall))
            latest = wall + timedelta(minutes=59)
            continue
        for minute in range(at, at + 3_600, 60):
            wall = datetime.fromtimestamp(minute, place).replace(tzinfo=None, fold=0)
            each = wall if latest is None else latest + timedelta(minutes=1)
            while each <= wall:
                odd.append((float(minute), each))
                latest = each
                each += timedelta(minutes=1)
    return usual, odd


_NAMES = {"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}


def _is_day(expr: str, wall: datetime) -> bool:
    _, _, day, _, weekday = expr.split()
    in_month = day == "*" or str(wall.day) in day.split(",")
    in_week = weekday == "*" or wall.isoweekday() % 7 in _weekdays(weekday)
    return in_month or in_week if day != "*" and weekday != "*" else in_month and in_week


def _weekdays(text: str) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        low = _NAMES.get(first, -1) if first.isalpha() else int(first)
        high = low if not last else _NAMES[last] if last.isalpha() else int(last)
        found |= set(range(low, high + 1))
    return found
