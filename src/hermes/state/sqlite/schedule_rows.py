"""The schedule in SQLite: what is asked for by a column has one, the rest of a row is in its body."""

# ruff: noqa: S608 - all words in the statements stand in this file

import logging
import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from hermes.state.codec import bind_text, encode_json
from hermes.state.schedule_rows import Delivery, DeliveryState, DueMoment, Job, MomentState, ScheduleTx, TickerLease
from hermes.typed import from_json

if TYPE_CHECKING:
    from hermes.state.sqlite.store import SqliteStore

Answer = TypeVar("Answer")
Row = TypeVar("Row", Job, DueMoment, Delivery, TickerLease)
_log = logging.getLogger(__name__)
LEASE = "ticker_lease"  # its name in `state_meta`

_MOMENTS = "SELECT id, state, cost_usd, body FROM due_moments"
_PUT_MOMENT = (
    "INSERT INTO due_moments(id, job_id, kind, state, due_at, last_at, start_at, cost_usd, body)"
    " VALUES (?,?,?,?,?,?,?,?,?)"
)
_SET_MOMENT = (
    "UPDATE due_moments SET job_id=?2, kind=?3, state=?4, due_at=?5, last_at=?6, start_at=?7, cost_usd=?8, body=?9"
    " WHERE id=?1"
)


class SqliteScheduleRows:
    """`ScheduleRows` over the connections of a store."""

    def __init__(self, store: "SqliteStore") -> None:
        self._store = store

    def read(self, work: Callable[[ScheduleTx], Answer]) -> Answer:
        return self._store.read(lambda conn: work(SqliteScheduleTx(conn)))

    def write(self, work: Callable[[ScheduleTx], Answer]) -> Answer:
        return self._store.write(lambda conn: work(SqliteScheduleTx(conn)))


class SqliteScheduleTx:
    """`ScheduleTx` over the connection of a transaction."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn

    # -- jobs --------------------------------------------------------------------------------------------------------

    def job(self, job_id: str) -> Job | None:
        found = self._rows("SELECT body FROM scheduled_jobs WHERE id = ?", bind_text(job_id))
        return _read(Job, found[0][0]) if found else None

    def jobs(self) -> list[Job]:
        rows = self._rows("SELECT body FROM scheduled_jobs ORDER BY created_at, id")
        return [job for (body,) in rows if (job := _read(Job, body)) is not None]

    def put_job(self, job: Job) -> None:
        self._conn.execute(
            "INSERT INTO scheduled_jobs(id, created_at, body) VALUES (?,?,?)"
            " ON CONFLICT(id) DO UPDATE SET body = excluded.body",
            (bind_text(job.id), job.created_at, encode_json(job)),
        )

    def drop_job(self, job_id: str) -> None:
        self._conn.execute("DELETE FROM scheduled_jobs WHERE id = ?", (bind_text(job_id),))

    # -- moments -----------------------------------------------------------------------------------------------------

    def due(self, now: float, limit: int) -> list[DueMoment]:
        return self._moments("state = 'planned' AND start_at <= ? ORDER BY start_at, id LIMIT ?", now, limit)

    def next_start(self) -> float | None:
        found = self._rows("SELECT min(start_at) FROM due_moments WHERE state = 'planned'")
        return None if found[0][0] is None else float(found[0][0])

    def moment(self, moment_id: int) -> DueMoment | None:
        return next(iter(self._moments("id = ?", moment_id)), None)

    def of_job(self, job_id: str, *states: MomentState) -> list[DueMoment]:
        among = ", ".join("?" * len(states))
        return self._moments(f"job_id = ? AND state IN ({among}) ORDER BY due_at, id", bind_text(job_id), *states)

    def last_before(self, job_id: str, due_at: float) -> DueMoment | None:
        where = (
            "job_id = ? AND kind = 'schedule' AND state != 'folded' AND due_at < ?"
            " ORDER BY job_id DESC, kind DESC, due_at DESC LIMIT 1"
        )
        return next(iter(self._moments(where, bind_text(job_id), due_at)), None)

    def in_state(self, state: MomentState) -> list[DueMoment]:
        return self._moments(f"state = '{state}' ORDER BY id")

    def history(self, job_id: str | None, limit: int) -> list[DueMoment]:
        where, values = ("job_id = ? AND ", (bind_text(job_id),)) if job_id is not None else ("", ())
        return self._moments(f"{where}state != 'planned' ORDER BY last_at DESC, id DESC LIMIT ?", *values, limit)

    def ended_before(self, at: float, limit: int) -> list[DueMoment]:
        return self._moments("last_at < ? AND state IN ('done', 'skipped') ORDER BY last_at LIMIT ?", at, limit)

    def add_moment(self, moment: DueMoment) -> int:
        try:
            row = self._conn.execute(_PUT_MOMENT, (None, *_values(moment)))
        except sqlite3.IntegrityError as error:
            raise ValueError(f"job {moment.job_id!r} has a row for this moment already") from error
        return row.lastrowid or 0

    def put_moment(self, moment: DueMoment) -> None:
        self._conn.execute(_SET_MOMENT, (moment.id, *_values(moment)))

    def drop_moment(self, moment_id: int) -> None:
        self._conn.execute("DELETE FROM due_moments WHERE id = ?", (moment_id,))

    def cost_since(self, job_id: str, at: float) -> float:
        sql = "SELECT total(cost_usd) FROM due_moments WHERE job_id = ? AND due_at >= ? AND state = 'done'"
        return float(self._rows(sql, bind_text(job_id), at)[0][0])

    # -- the outbox ----------------------------------------------------------------------------------------------------

    def delivery(self, delivery_id: int) -> Delivery | None:
        return next(iter(self._deliveries("id = ?", delivery_id)), None)

    def deliveries(self, state: DeliveryState, now: float, limit: int) -> list[Delivery]:
        return self._deliveries(f"state = '{state}' AND next_try_at <= ? ORDER BY next_try_at, id LIMIT ?", now, limit)

    def add_delivery(self, delivery: Delivery) -> int:
        sql = "INSERT INTO outbox(job_id, state, at, next_try_at, body) VALUES (?,?,?,?,?)"
        return self._conn.execute(sql, _delivery_values(delivery)).lastrowid or 0

    def put_delivery(self, delivery: Delivery) -> None:
        sql = "UPDATE outbox SET job_id=?, state=?, at=?, next_try_at=?, body=? WHERE id=?"
        self._conn.execute(sql, (*_delivery_values(delivery), delivery.id))

    def drop_deliveries(self, before: float) -> int:
        return self._conn.execute("DELETE FROM outbox WHERE state IN ('sent', 'failed') AND at < ?", (before,)).rowcount

    # -- the lease -----------------------------------------------------------------------------------------------------

    def lease(self) -> TickerLease | None:
        found = self._rows("SELECT value FROM state_meta WHERE key = ?", LEASE)
        return _read(TickerLease, found[0][0]) if found and found[0][0] else None

    def put_lease(self, lease: TickerLease | None) -> None:
        value = None if lease is None else msgspec.json.encode(lease).decode()
        self._conn.execute(
            "INSERT INTO state_meta(key, value) VALUES (?, ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value",
            (LEASE, value),
        )

    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._conn.execute(sql, values).fetchall()

    def _moments(self, where: str, *values: Any) -> list[DueMoment]:
        rows = self._rows(f"{_MOMENTS} WHERE {where}", *values)
        return [moment for row in rows if (moment := _moment(row)) is not None]

    def _deliveries(self, where: str, *values: Any) -> list[Delivery]:
        rows = self._rows(f"SELECT id, body FROM outbox WHERE {where}", *values)
        read = [(number, _read(Delivery, body)) for number, body in rows]
        return [msgspec.structs.replace(found, id=number) for number, found in read if found is not None]


def _moment(row: tuple[Any, ...]) -> DueMoment | None:
    """The columns win: they are what others have found it by."""
    number, state, cost_usd, body = row
    found = _read(DueMoment, body)
    return msgspec.structs.replace(found, id=number, state=state, cost_usd=cost_usd) if found is not None else None


def _values(moment: DueMoment) -> tuple[Any, ...]:
    last = moment.last_at or moment.due_at
    placed = (bind_text(moment.job_id), moment.kind, moment.state, moment.due_at, last, moment.start_at)
    return (*placed, moment.cost_usd, encode_json(moment))


def _delivery_values(delivery: Delivery) -> tuple[Any, ...]:
    return (bind_text(delivery.job_id), delivery.state, delivery.at, delivery.next_try_at, encode_json(delivery))


def _read(kind: type[Row], body: str) -> Row | None:
    """None for a row that nobody can read: it costs itself, and not all others."""
    try:
        return from_json(body, kind)
    except msgspec.MsgspecError as error:
        _log.warning("a row of the schedule cannot be read and is passed over: %s", error)
        return None
