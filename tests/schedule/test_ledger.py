"""The account of due moments: who ticks, what is taken over, what is folded, and what a bad row costs."""

from zoneinfo import ZoneInfo

from msgspec.structs import replace

from hermes.schedule.decide import first_plan
from hermes.schedule.ledger import LEASE_S, MomentResult, ScheduleLedger, plan
from hermes.schedule.tick import TickState
from hermes.state.schedule_rows import Delivery, Job, Schedule, ScheduleTx
from tests.state.memory_schedule import MemoryScheduleRows

UTC = ZoneInfo("UTC")
NOW = 1_772_439_300.0


def ledger_of(rows: MemoryScheduleRows, owner: str = "a") -> ScheduleLedger:
    return ScheduleLedger(rows, lambda _job: UTC, owner=owner, is_alive=lambda _owner: True)


def add(rows: MemoryScheduleRows, number: int, **fields: object) -> Job:
    schedule = Schedule(kind="interval", at=NOW, seconds=60, display="every 1m")
    job = replace(Job(id=f"{number:012x}", name="job", schedule=schedule, created_at=NOW, mark=NOW), **fields)

    def work(tx: ScheduleTx) -> None:
        tx.put_job(job)
        at = first_plan(job, UTC)
        assert at is not None
        plan(tx, job, at)

    rows.write(work)
    return job


def kept(job: Job) -> tuple[Job, list[Delivery]]:
    return job, []


def test_one_ticks_and_another_takes_over_when_it_is_silent() -> None:
    rows = MemoryScheduleRows()
    add(rows, 1)
    one, other = TickState(ledger_of(rows, "a"), 90), TickState(ledger_of(rows, "b"), 90)
    assert one.tick(NOW + 50) == []
    assert other.tick(NOW + 60) == []
    assert (one.is_leader, other.is_leader) == (True, False)
    later = NOW + 50 + LEASE_S + 1
    assert len(other.tick(later)) == 1
    assert other.is_leader
    assert one.tick(later + 1) == []
    assert not one.is_leader


def test_a_moment_that_was_taken_over_is_ended_by_nobody_else() -> None:
    rows = MemoryScheduleRows()
    add(rows, 1)
    (mine,) = ledger_of(rows, "a").claim_due(NOW + 60, 10)
    (theirs,) = ledger_of(rows, "b").adopt_lost(NOW + 60 + LEASE_S + 1)
    assert theirs.moment.id == mine.moment.id
    ok = MomentResult(outcome="ok")
    assert ledger_of(rows, "a").finish(mine, ok, NOW + 100, kept) is False
    assert ledger_of(rows, "a").reach(mine, "agent", "s") is None
    assert ledger_of(rows, "a").renew([mine.moment], NOW + 100) == [mine.moment.id]
    assert ledger_of(rows, "b").finish(theirs, ok, NOW + 100, kept) is True


def test_a_job_that_cannot_be_worked_out_is_set_aside_and_others_run() -> None:
    rows = MemoryScheduleRows()
    bad, good = add(rows, 1, deliver="origin"), add(rows, 2)
    rows.write(lambda tx: tx.put_job(replace(bad, schedule=Schedule(kind="cron", expr="nonsense", display="?"))))
    (claimed,) = ledger_of(rows).claim_due(NOW + 60, 10)
    assert claimed.job.id == good.id
    after = rows.read(lambda tx: tx.job(bad.id))
    assert after is not None
    assert (after.state, after.last_status) == ("error", "error")
    assert "cannot be worked out" in rows.read(lambda tx: tx.deliveries("waiting", NOW, 9))[0].text
    assert ledger_of(rows).claim_due(NOW + 61, 10) == []


def test_old_rows_become_counts_and_nothing_is_lost_of_them() -> None:
    rows = MemoryScheduleRows()
    add(rows, 1, catch_up="all")
    ledger = ledger_of(rows)
    for minute in range(1, 51):
        for claimed in ledger.claim_due(NOW + 60 * minute, 10):
            outcome = "error" if minute % 10 == 0 else "ok"
            ledger.finish(claimed, MomentResult(outcome=outcome, cost_usd=0.5), NOW + 60 * minute, kept)
    assert ledger.fold(NOW + 60 * 31) == 30
    assert ledger.fold(NOW + 60 * 41) == 10
    assert ledger.fold(NOW + 60 * 41) == 0
    folded = [row for row in rows.read(lambda tx: tx.history(None, 100)) if row.state == "folded"]
    assert {(row.outcome, row.count, row.cost_usd) for row in folded} == {("ok", 36, 18.0), ("error", 4, 2.0)}
    assert len(rows.read(lambda tx: tx.history(None, 100))) == 12


def test_a_clock_that_goes_back_brings_back_what_was_passed_over_and_nothing_that_ran() -> None:
    rows = MemoryScheduleRows()
    job = add(rows, 1)
    state = TickState(ledger_of(rows), 90)
    assert state.tick(NOW + 1) == []
    (wrong,) = state.tick(NOW + 100 * 60)  # the clock is wrong by an hour and more
    state.ledger.finish(wrong, MomentResult(outcome="ok"), NOW, kept)
    state.ended(wrong.moment.id)
    (skipped,) = [row for row in rows.read(lambda tx: tx.history(job.id, 10)) if row.state == "skipped"]
    assert skipped.count == 99
    assert state.tick(NOW + 90) == []
    assert [(row.state, row.count) for row in rows.read(lambda tx: tx.history(job.id, 10))] == [
        ("done", 1),
        ("skipped", 1),
    ]
    ran = []
    for minute in range(2, 103):
        for claimed in state.tick(NOW + 60 * minute + 1):
            ran.append(claimed.moment.due_at)
            state.ledger.finish(claimed, MomentResult(outcome="ok"), NOW + 60 * minute, kept)
            state.ended(claimed.moment.id)
    assert ran == [NOW + 60 * minute for minute in range(2, 103) if minute != 100]
