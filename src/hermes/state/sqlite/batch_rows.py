"""Batch runs in SQLite: each call is one transaction; long answers are read piece by piece."""

# ruff: noqa: S608 - all words in the statements stand in this file

import sqlite3
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from hermes.state import owner
from hermes.state.batch_rows import (
    ENDED,
    SAMPLE_STATES,
    BatchRun,
    RunSpending,
    SampleKey,
    SampleRow,
    SampleState,
)
from hermes.state.codec import bind_text, decode_json, encode_json, read_text
from hermes.state.sqlite.leases import lease_of
from hermes.state.sqlite.session_continuation import tip_of

if TYPE_CHECKING:
    from hermes.state.sqlite.store import SqliteStore

_PAGE = 500
_BODY_PAGE = 20
_COLUMNS = "idx, digest, state, attempt, session_id, owner, reason, facts"
_RUN = "SELECT run_id, name, folder, spec, started_at, ended_at FROM batch_runs"
_ONE = "WHERE run_id = ? AND idx = ?"
_ALL = 2**62
# A child's calls are its sample's, and a session that is compressed goes on under another id.
_SPENDING = (
    "WITH RECURSIVE tree(id) AS (SELECT id FROM sessions WHERE id > ? AND id < ?"
    " UNION SELECT s.id FROM sessions s JOIN tree ON s.parent_session_id = tree.id)"
    " SELECT count(*), coalesce(sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)"
    " + coalesce(cache_read_tokens, 0) + coalesce(cache_write_tokens, 0)), 0), coalesce(sum(cost_usd), 0.0),"
    " coalesce(sum(cost_usd IS NULL AND output_tokens IS NOT NULL), 0)"
    " FROM attempts WHERE session_id IN tree AND outcome IS NOT NULL"
)
_ENDED = f"({', '.join(repr(state) for state in ENDED)})"


class SqliteBatchRows:
    """`BatchRows` over the connections of a store."""

    def __init__(self, store: "SqliteStore") -> None:
        self._store = store

    def begin(self, run: BatchRun, samples: Sequence[SampleKey]) -> int:
        spec, at = bind_text(encode_json(run.spec)), run.started_at or time.time()

        def work(conn: sqlite3.Connection) -> int:
            conn.execute(
                "INSERT INTO batch_runs(run_id, name, folder, spec, started_at) VALUES (?,?,?,?,?)"
                " ON CONFLICT(run_id) DO UPDATE SET spec = excluded.spec, ended_at = NULL",
                (bind_text(run.run_id), bind_text(run.name), bind_text(run.folder), spec, at),
            )
            known = dict(conn.execute("SELECT idx, digest FROM batch_samples WHERE run_id = ?", (run.run_id,)))
            fresh = [one for one in samples if known.get(one.index) != one.digest]
            conn.executemany(
                "UPDATE batch_samples SET digest = ?, state = 'waiting', session_id = NULL, owner = NULL,"
                f" reason = NULL, facts = NULL, body = NULL {_ONE}",
                [(one.digest, run.run_id, one.index) for one in fresh if one.index in known],
            )
            conn.executemany(
                "INSERT INTO batch_samples(run_id, idx, digest, state, attempt) VALUES (?,?,?,'waiting',0)",
                [(run.run_id, one.index, one.digest) for one in fresh if one.index not in known],
            )
            return len(fresh)

        return self._store.write(work)

    def find(self, run_id: str) -> BatchRun | None:
        found = self._store.read(lambda conn: conn.execute(f"{_RUN} WHERE run_id = ?", (run_id,)).fetchone())
        return None if found is None else _run(found)

    def runs(self) -> list[BatchRun]:
        rows = self._store.read(lambda conn: conn.execute(f"{_RUN} ORDER BY started_at DESC, rowid DESC").fetchall())
        return [_run(row) for row in rows]

    def ended(self, run_id: str, at: float | None) -> None:
        self._store.write(
            lambda conn: conn.execute("UPDATE batch_runs SET ended_at = ? WHERE run_id = ?", (at, run_id)).rowcount
        )

    def rows(self, run_id: str) -> Iterator[SampleRow]:
        sql = f"SELECT {_COLUMNS} FROM batch_samples WHERE run_id = ? AND idx > ? ORDER BY idx LIMIT {_PAGE}"
        yield from (_sample(row) for row in self._pages(sql, run_id, -1, _PAGE))

    def counts(self, run_id: str) -> dict[SampleState, int]:
        sql = "SELECT state, count(*) FROM batch_samples WHERE run_id = ? GROUP BY state"
        found = dict(self._store.read(lambda conn: conn.execute(sql, (run_id,)).fetchall()))
        return {state: found.get(state, 0) for state in SAMPLE_STATES}

    def take(self, run_id: str, most: int, below: int | None = None) -> list[SampleRow]:
        me = owner.this_process()

        def work(conn: sqlite3.Connection) -> list[SampleRow]:
            _free_what_is_left(conn, run_id, me)
            # What was begun goes first: it is nearest to its end, and its workspace is there.
            sql = (
                f"SELECT {_COLUMNS} FROM batch_samples WHERE run_id = ? AND state = 'waiting' AND idx < ?"
                " ORDER BY attempt = 0, idx LIMIT ?"
            )
            rows = conn.execute(sql, (run_id, _ALL if below is None else below, most)).fetchall()
            found = [_sample(row) for row in rows]
            conn.executemany(
                f"UPDATE batch_samples SET state = 'running', owner = ? {_ONE}",
                [(me, run_id, one.index) for one in found],
            )
            if first := [one.index for one in found if not one.attempt]:
                run = _run(conn.execute(f"{_RUN} WHERE run_id = ?", (run_id,)).fetchone())
                conn.executemany(
                    f"UPDATE batch_samples SET attempt = 1, session_id = ? {_ONE}",
                    [(run.session_of(index, 1), run_id, index) for index in first],
                )
            return found

        return self._store.write(work)

    def hold(self, run_id: str, index: int, attempt: int, session_id: str) -> None:
        values = (attempt, session_id, owner.this_process(), run_id, index)
        self._store.write(
            lambda conn: (
                conn.execute(
                    f"UPDATE batch_samples SET state = 'running', attempt = ?, session_id = ?, owner = ? {_ONE}", values
                ).rowcount
            )
        )

    def put_back(self, run_id: str, index: int) -> None:
        sql = f"UPDATE batch_samples SET state = 'waiting' {_ONE} AND state = 'running'"
        self._store.write(lambda conn: conn.execute(sql, (run_id, index)).rowcount)

    def again(self, run_id: str) -> int:
        sql = "UPDATE batch_samples SET state = 'waiting', reason = NULL WHERE run_id = ? AND state = 'failed'"
        return self._store.write(lambda conn: conn.execute(sql, (run_id,)).rowcount)

    def finish(self, run_id: str, *ended: tuple[SampleRow, bytes | None]) -> list[bool]:
        sql = (
            "UPDATE batch_samples SET state = ?, attempt = ?, session_id = ?, reason = ?, facts = ?, body = ?"
            f" {_ONE} AND state NOT IN {_ENDED}"
        )
        told = [(*_values(row, body), run_id, row.index) for row, body in ended]
        return self._store.write(lambda conn: [conn.execute(sql, one).rowcount > 0 for one in told])

    def bodies(self, run_id: str, after: int = -1) -> Iterator[tuple[int, SampleState, bytes]]:
        sql = (
            "SELECT idx, state, body FROM batch_samples WHERE run_id = ? AND idx > ? AND body IS NOT NULL"
            f" ORDER BY idx LIMIT {_BODY_PAGE}"
        )
        for index, state, body in self._pages(sql, run_id, after, _BODY_PAGE):
            yield index, state, b64decode(body)

    def spending(self, run_id: str) -> RunSpending:
        run = self.find(run_id)
        if run is None:
            return RunSpending()
        prefix = run.session_prefix
        found = self._store.read(lambda conn: conn.execute(_SPENDING, (prefix, f"{prefix}~")).fetchone())
        return RunSpending(calls=found[0], tokens=found[1], cost_usd=found[2], unpriced=found[3])

    def sample(self, run_id: str, index: int) -> tuple[SampleRow, bytes | None] | None:
        sql = f"SELECT {_COLUMNS}, body FROM batch_samples {_ONE}"
        found = self._store.read(lambda conn: conn.execute(sql, (run_id, index)).fetchone())
        return None if found is None else (_sample(found[:-1]), found[-1] and b64decode(found[-1]))

    def forget(self, run_id: str) -> bool:
        def work(conn: sqlite3.Connection) -> bool:
            conn.execute("DELETE FROM batch_samples WHERE run_id = ?", (run_id,))
            return conn.execute("DELETE FROM batch_runs WHERE run_id = ?", (run_id,)).rowcount > 0

        return self._store.write(work)

    def _pages(self, sql: str, run_id: str, after: int, size: int) -> Iterator[Any]:
        while True:
            values = (run_id, after)
            page = self._store.read(lambda conn, values=values: conn.execute(sql, values).fetchall())  # type: ignore[misc]  # a default binds the loop's value
            yield from page
            if len(page) < size:
                return
            after = page[-1][0]


def _free_what_is_left(conn: sqlite3.Connection, run_id: str, me: str) -> None:
    """Let wait again what a process had that is gone."""
    mine = "run_id = ? AND state = 'running' AND owner IS ?"
    held = conn.execute("SELECT DISTINCT owner FROM batch_samples WHERE run_id = ? AND state = 'running'", (run_id,))
    for (held_by,) in held.fetchall():
        if held_by == me:
            continue
        if owner.may_be_alive(held_by or "") and (
            owner.is_alive_here(held_by or "") or _is_heard(conn, run_id, held_by)
        ):
            continue
        conn.execute(f"UPDATE batch_samples SET state = 'waiting' WHERE {mine}", (run_id, held_by))


def _is_heard(conn: sqlite3.Connection, run_id: str, held_by: str | None) -> bool:
    """Whether one that cannot be looked at, on another machine or in another container or boot, keeps up a session."""
    sql = "SELECT session_id FROM batch_samples WHERE run_id = ? AND state = 'running' AND owner IS ?"
    sessions = [row[0] for row in conn.execute(sql, (run_id, held_by)).fetchall() if row[0]]
    return any(lease_of(conn, tip_of(conn, one)) is not None for one in sessions)


def _values(row: SampleRow, body: bytes | None) -> tuple[Any, ...]:
    kept = None if body is None else b64encode(body).decode()
    return row.state, row.attempt, row.session_id, bind_text(row.reason), bind_text(encode_json(row.facts)), kept


def _run(row: tuple[Any, ...]) -> BatchRun:
    run_id, name, folder, spec, started_at, ended_at = row
    return BatchRun(
        run_id=read_text(run_id) or "",
        name=read_text(name) or "",
        folder=read_text(folder) or "",
        spec=decode_json(spec) or {},
        started_at=started_at,
        ended_at=ended_at,
    )


def _sample(row: tuple[Any, ...]) -> SampleRow:
    index, digest, state, attempt, session_id, held_by, reason, facts = row
    return SampleRow(
        index=index,
        digest=digest,
        state=cast("SampleState", state) if state in SAMPLE_STATES else "waiting",
        attempt=attempt,
        session_id=session_id or "",
        owner=held_by or "",
        reason=read_text(reason) or "",
        facts=decode_json(facts) or {} if facts else {},
    )
