"""What every `BatchRows` owes a run."""

import sqlite3
import time
from pathlib import Path
from typing import Protocol

import pytest

from hermes.ops import SessionCreated
from hermes.seams import EventStore
from hermes.state import SqliteStore
from hermes.state.batch_rows import BatchRows, BatchRun, SampleKey, SampleRow

RUN = BatchRun(run_id="r", name="first", folder="/data/first", spec={"seed": 3}, started_at=10.0)
KEYS = [SampleKey(index, f"d{index}") for index in range(5)]


class Store(EventStore, Protocol):
    @property
    def batch_rows(self) -> BatchRows: ...


def begun(store: Store) -> BatchRows:
    rows = store.batch_rows
    assert rows.begin(RUN, KEYS) == 5
    return rows


def ended(index: int, state: str = "done", **fields: object) -> SampleRow:
    return SampleRow(index=index, digest=f"d{index}", state=state, attempt=1, session_id=f"s{index}", **fields)  # type: ignore[arg-type]


def states(rows: BatchRows) -> str:
    return "".join(row.state[0] for row in rows.rows("r"))


def test_a_run_is_entered_once_and_its_samples_stay(store: Store) -> None:
    rows = begun(store)

    assert rows.finish("r", (ended(1), b"one")) == [True]
    assert rows.begin(RUN, [*KEYS, SampleKey(5, "d5")]) == 1

    assert states(rows) == "wdwwww"
    assert rows.find("r") == RUN
    assert [one.run_id for one in rows.runs()] == ["r"]
    assert rows.find("other") is None


def test_other_words_at_a_place_are_a_new_sample(store: Store) -> None:
    rows = begun(store)
    rows.finish("r", (ended(1), b"one"))

    assert rows.begin(RUN, [SampleKey(1, "new")]) == 1

    assert states(rows) == "wwwww"
    assert list(rows.bodies("r")) == []
    found = rows.take("r", 1)  # what was begun there once goes first, as another attempt in no session yet
    assert [(row.index, row.digest, row.attempt, row.session_id) for row in found] == [(1, "new", 1, "")]


def test_only_samples_before_a_place_are_taken(store: Store) -> None:
    rows = begun(store)

    assert [row.index for row in rows.take("r", 9, below=2)] == [0, 1]
    assert rows.take("r", 9, below=2) == []


def test_no_sample_is_taken_twice_and_what_was_begun_comes_first(store: Store) -> None:
    rows = begun(store)

    first = rows.take("r", 2)
    rows.put_back("r", 1)

    assert [(row.index, row.attempt) for row in first] == [(0, 0), (1, 0)]
    again = rows.take("r", 2)
    assert [(row.index, row.attempt, row.session_id) for row in again] == [(1, 1, RUN.session_of(1, 1)), (2, 0, "")]
    rows.hold("r", 1, 2, RUN.session_of(1, 2))
    rows.put_back("r", 1)
    assert [(row.index, row.attempt) for row in rows.take("r", 9)] == [(1, 2), (3, 0), (4, 0)]
    assert rows.take("r", 9) == []


def test_a_sample_ends_once(store: Store) -> None:
    rows = begun(store)

    first, second, other = (ended(3, facts={"tokens": 7}), b"first"), (ended(3, "failed"), b"second"), (ended(4), b"x")
    assert rows.finish("r", first, second, other) == [True, False, True]
    assert rows.finish("r", second, (ended(9), b"unknown")) == [False, False]

    assert rows.sample("r", 3) is not None
    row, body = rows.sample("r", 3) or (None, None)
    assert (row and row.facts, row and row.state, body) == ({"tokens": 7}, "done", b"first")
    assert rows.counts("r") == {"waiting": 3, "running": 0, "done": 2, "dropped": 0, "failed": 0}


def test_what_failed_can_wait_again(store: Store) -> None:
    rows = begun(store)
    rows.finish("r", (ended(0, "failed", reason="no answer"), None))
    rows.finish("r", (ended(1, "dropped", reason="no_reasoning"), None))

    assert rows.again("r") == 1

    assert states(rows) == "wdwww"
    assert next(iter(rows.rows("r"))).reason == ""


def test_bodies_come_in_the_order_of_the_dataset(store: Store) -> None:
    rows = begun(store)
    for index in (4, 0, 2):
        rows.finish("r", (ended(index, "dropped" if index == 2 else "done"), str(index).encode()))

    assert list(rows.bodies("r")) == [(0, "done", b"0"), (2, "dropped", b"2"), (4, "done", b"4")]
    assert [index for index, _, _ in rows.bodies("r", after=0)] == [2, 4]


def test_more_rows_than_a_page_are_read_whole(store: Store) -> None:
    rows = store.batch_rows
    rows.begin(RUN, [SampleKey(index, "d") for index in range(1203)])
    for index in range(45):
        rows.finish("r", (ended(index), b"x"))

    assert [row.index for row in rows.rows("r")] == list(range(1203))
    assert len(list(rows.bodies("r"))) == 45


def test_a_forgotten_run_is_gone(store: Store) -> None:
    rows = begun(store)

    assert rows.forget("r")
    assert not rows.forget("r")
    assert list(rows.rows("r")) == []


def test_what_a_process_had_that_is_gone_waits_again(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    rows = begun(store)
    rows.take("r", 3)
    gone = "999999999"
    store.write(
        lambda conn: (
            conn.execute(
                "UPDATE batch_samples SET owner = substr(owner, 1, instr(owner, ':')) || ? WHERE idx = 1",
                (f"{gone}:1",),
            ).rowcount
        )
    )

    assert [row.index for row in rows.take("r", 9)] == [1, 3, 4]
    store.close_sync()


def test_what_a_process_has_elsewhere_waits_again_once_its_sessions_are_silent(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    rows = begun(store)
    rows.take("r", 2)
    session = RUN.session_of(0, 1)
    store.commit_sync(SessionCreated(session_id=session, source="batch", model="m"))

    def elsewhere(conn: sqlite3.Connection, at: float) -> int:
        conn.execute("UPDATE batch_samples SET owner = 'far/0/1:7:1' WHERE idx < 2")
        conn.execute("DELETE FROM leases")
        values = (session, "far/0/1:7:1", at, at)
        sql = "INSERT INTO leases(fence, session_id, owner, since, renewed_at) VALUES (1, ?, ?, ?, ?)"
        return conn.execute(sql, values).rowcount

    store.write(lambda conn: elsewhere(conn, time.time()))
    assert [row.index for row in rows.take("r", 1)] == [2]
    store.write(lambda conn: elsewhere(conn, time.time() - 3600))
    assert [row.index for row in rows.take("r", 9)] == [0, 1, 3, 4]
    store.close_sync()


@pytest.mark.parametrize("text", ["\ud800", "a\x00b", "é"])
def test_any_reason_can_be_kept(store: Store, text: str) -> None:
    rows = begun(store)
    rows.finish("r", (ended(0, "failed", reason=text), None))
    assert len(next(iter(rows.rows("r"))).reason) == len(text)
