"""What every `ScheduleRows` owes the schedule."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import pytest

from hermes.seams import EventStore
from hermes.state.schedule_rows import (
    Delivery,
    DueMoment,
    Job,
    Schedule,
    ScheduleRows,
    ScheduleTx,
    TickerLease,
)


class Store(EventStore, Protocol):
    """A store with a schedule."""

    @property
    def schedule(self) -> ScheduleRows: ...


def job(number: int) -> Job:
    schedule = Schedule(kind="interval", seconds=60, display="every 1m")
    return Job(id=f"{number:012x}", name=f"jöb {number}", schedule=schedule, created_at=100.0 + number, mark=0.0)


def moment(job_id: str, due_at: float, **fields: Any) -> DueMoment:
    given: dict[str, Any] = {"last_at": due_at, "start_at": due_at, "state": "planned", **fields}
    return DueMoment(job_id=job_id, due_at=due_at, **given)


def put(rows: ScheduleRows, *works: Callable[[ScheduleTx], object]) -> list[object]:
    return rows.write(lambda tx: [work(tx) for work in works])


async def test_jobs_come_back_as_they_were_put(store: Store) -> None:
    rows = store.schedule
    put(rows, lambda tx: tx.put_job(job(2)), lambda tx: tx.put_job(job(1)))
    assert rows.read(lambda tx: tx.jobs()) == [job(1), job(2)]
    assert rows.read(lambda tx: tx.job(job(1).id)) == job(1)
    assert rows.read(lambda tx: tx.job("gone")) is None
    put(rows, lambda tx: tx.drop_job(job(1).id))
    assert rows.read(lambda tx: tx.jobs()) == [job(2)]


async def test_moments_are_found_by_what_is_asked(store: Store) -> None:
    rows = store.schedule
    ids = put(rows, *(lambda tx, at=at: tx.add_moment(moment("a", at)) for at in (30.0, 10.0, 20.0)))
    assert [row.due_at for row in rows.read(lambda tx: tx.due(25.0, 10))] == [10.0, 20.0]
    assert [row.due_at for row in rows.read(lambda tx: tx.due(25.0, 1))] == [10.0]
    assert rows.read(lambda tx: tx.next_start()) == 10.0
    done = moment("a", 10.0, id=ids[1], state="done", cost_usd=0.5, outcome="ok")
    put(rows, lambda tx: tx.put_moment(done))
    assert rows.read(lambda tx: tx.moment(done.id)) == done
    assert rows.read(lambda tx: tx.next_start()) == 20.0
    assert rows.read(lambda tx: tx.of_job("a", "done")) == [done]
    assert rows.read(lambda tx: tx.last_before("a", 20.0)) == done
    assert rows.read(lambda tx: tx.last_before("a", 10.0)) is None
    assert rows.read(lambda tx: tx.history(None, 10)) == [done]
    assert rows.read(lambda tx: tx.history("b", 10)) == []
    assert rows.read(lambda tx: tx.ended_before(11.0, 10)) == [done]
    assert rows.read(lambda tx: tx.ended_before(10.0, 10)) == []
    assert rows.read(lambda tx: tx.cost_since("a", 10.0)) == 0.5
    assert rows.read(lambda tx: tx.cost_since("a", 10.5)) == 0.0
    put(rows, lambda tx: tx.drop_moment(done.id))
    assert rows.read(lambda tx: tx.moment(done.id)) is None


async def test_a_moment_has_one_row_and_a_write_that_fails_leaves_nothing(store: Store) -> None:
    rows = store.schedule
    put(rows, lambda tx: tx.add_moment(moment("a", 10.0)))
    with pytest.raises(ValueError, match="has a row for this moment"):
        put(rows, lambda tx: tx.put_job(job(1)), lambda tx: tx.add_moment(moment("a", 10.0)))
    assert rows.read(lambda tx: tx.jobs()) == []
    put(rows, lambda tx: tx.add_moment(moment("a", 10.0, kind="manual")), lambda tx: tx.add_moment(moment("b", 10.0)))
    put(rows, *(lambda tx: tx.add_moment(moment("a", 10.0, state="folded")) for _ in range(2)))
    assert len(rows.read(lambda tx: tx.in_state("planned"))) == 3


async def test_what_is_to_be_delivered_waits_for_its_time(store: Store) -> None:
    rows = store.schedule
    one = Delivery(job_id="a", target="origin", text="hellö", at=5.0, origin={"session_id": "s"})
    (number,) = put(rows, lambda tx: tx.add_delivery(one))
    assert isinstance(number, int)
    (found,) = rows.read(lambda tx: tx.deliveries("waiting", 1.0, 9))
    assert (found.text, found.origin, found.id) == ("hellö", {"session_id": "s"}, number)
    later = Delivery(job_id="a", target="origin", text="x", at=5.0, id=number, next_try_at=50.0)
    put(rows, lambda tx: tx.put_delivery(later))
    assert rows.read(lambda tx: tx.deliveries("waiting", 49.0, 9)) == []
    assert rows.read(lambda tx: tx.deliveries("waiting", 50.0, 9)) == [later]
    assert put(rows, lambda tx: tx.drop_deliveries(10.0)) == [0]
    put(rows, lambda tx: tx.put_delivery(Delivery(job_id="a", target="", text="", at=5.0, id=number, state="sent")))
    assert put(rows, lambda tx: tx.drop_deliveries(10.0)) == [1]


async def test_the_lease_is_one_row(store: Store) -> None:
    rows = store.schedule
    assert rows.read(lambda tx: tx.lease()) is None
    lease = TickerLease(fence=7, owner="me", since=1.0, renewed_at=2.0, seen_at=3.0)
    put(rows, lambda tx: tx.put_lease(lease))
    assert rows.read(lambda tx: tx.lease()) == lease
    put(rows, lambda tx: tx.put_lease(None))
    assert rows.read(lambda tx: tx.lease()) is None


async def test_of_many_that_change_a_row_at_once_none_is_lost(store: Store) -> None:
    rows = store.schedule
    put(rows, lambda tx: tx.put_job(job(1)))

    def count(tx: ScheduleTx) -> None:
        found = tx.job(job(1).id)
        assert found is not None
        tx.put_job(
            Job(**{name: getattr(found, name) for name in found.__struct_fields__} | {"failures": found.failures + 1})
        )

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: rows.write(count), range(40)))
    (found,) = rows.read(lambda tx: tx.jobs())
    assert found.failures == 40
