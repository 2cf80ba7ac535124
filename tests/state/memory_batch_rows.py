"""`BatchRows` in memory: the fake of the seam."""

import time
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

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


class MemoryBatchRows:
    def __init__(self) -> None:
        self._runs: dict[str, BatchRun] = {}
        self._samples: dict[str, dict[int, tuple[SampleRow, bytes | None]]] = {}

    def begin(self, run: BatchRun, samples: Sequence[SampleKey]) -> int:
        known = self._runs.get(run.run_id)
        at = known.started_at if known else run.started_at or time.time()
        self._runs[run.run_id] = replace(run, started_at=at, ended_at=None)
        rows = self._samples.setdefault(run.run_id, {})
        fresh = [one for one in samples if one.index not in rows or rows[one.index][0].digest != one.digest]
        for one in fresh:
            attempt = rows[one.index][0].attempt if one.index in rows else 0
            rows[one.index] = (SampleRow(index=one.index, digest=one.digest, attempt=attempt), None)
        return len(fresh)

    def find(self, run_id: str) -> BatchRun | None:
        return self._runs.get(run_id)

    def runs(self) -> list[BatchRun]:
        return sorted(self._runs.values(), key=lambda one: -one.started_at)

    def ended(self, run_id: str, at: float | None) -> None:
        self._runs[run_id] = replace(self._runs[run_id], ended_at=at)

    def rows(self, run_id: str) -> Iterator[SampleRow]:
        yield from (row for _, (row, _body) in sorted(self._samples.get(run_id, {}).items()))

    def counts(self, run_id: str) -> dict[SampleState, int]:
        states = [row.state for row in self.rows(run_id)]
        return {state: states.count(state) for state in SAMPLE_STATES}

    def take(self, run_id: str, most: int, below: int | None = None) -> list[SampleRow]:
        me = owner.this_process()
        for row in list(self.rows(run_id)):
            if row.state == "running" and row.owner != me and not owner.may_be_alive(row.owner):
                self._put(run_id, replace(row, state="waiting"))
        waiting = [row for row in self.rows(run_id) if row.state == "waiting" and (below is None or row.index < below)]
        found = sorted(waiting, key=lambda row: (row.attempt == 0, row.index))[:most]
        for row in found:
            first = {} if row.attempt else {"attempt": 1, "session_id": self._runs[run_id].session_of(row.index, 1)}
            self._put(run_id, replace(row, state="running", owner=me, **first))
        return found

    def hold(self, run_id: str, index: int, attempt: int, session_id: str) -> None:
        row = self._samples[run_id][index][0]
        mine = owner.this_process()
        self._put(run_id, replace(row, state="running", attempt=attempt, session_id=session_id, owner=mine))

    def put_back(self, run_id: str, index: int) -> None:
        row = self._samples[run_id][index][0]
        if row.state == "running":
            self._put(run_id, replace(row, state="waiting"))

    def again(self, run_id: str) -> int:
        found = [row for row in self.rows(run_id) if row.state == "failed"]
        for row in found:
            self._put(run_id, replace(row, state="waiting", reason=""))
        return len(found)

    def finish(self, run_id: str, *ended: tuple[SampleRow, bytes | None]) -> list[bool]:
        return [self._finish(run_id, row, body) for row, body in ended]

    def _finish(self, run_id: str, row: SampleRow, body: bytes | None) -> bool:
        found = self._samples[run_id].get(row.index)
        if found is None or found[0].state in ENDED:
            return False
        self._samples[run_id][row.index] = (replace(row, owner=found[0].owner, digest=found[0].digest), body)
        return True

    def bodies(self, run_id: str, after: int = -1) -> Iterator[tuple[int, SampleState, bytes]]:
        for index, (row, body) in sorted(self._samples.get(run_id, {}).items()):
            if index > after and body is not None:
                yield index, row.state, body

    def spending(self, run_id: str) -> RunSpending:
        return RunSpending()

    def sample(self, run_id: str, index: int) -> tuple[SampleRow, bytes | None] | None:
        return self._samples.get(run_id, {}).get(index)

    def forget(self, run_id: str) -> bool:
        self._samples.pop(run_id, None)
        return self._runs.pop(run_id, None) is not None

    def _put(self, run_id: str, row: SampleRow) -> None:
        self._samples[run_id][row.index] = (row, self._samples[run_id][row.index][1])
