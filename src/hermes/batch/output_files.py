"""The files of a run: batch_N.jsonl while it runs, trajectories, records, statistics and a checkpoint.

The rows in the store are the truth; the files are written from them, and whatever a kill left of a file is mended.
"""

import time
from pathlib import Path

import msgspec
from msgspec import Struct

from hermes.batch.replaced_file import disk_told, replaced
from hermes.batch.run_spec import RunSpec
from hermes.batch.sample_figures import NO_REASONING, Totals
from hermes.batch.sample_result import unpacked
from hermes.runtime.trajectory import dumped, timestamp
from hermes.state.batch_rows import BatchRows
from hermes.typed import from_json
from hermes.types import JsonObject

TRAJECTORIES, RECORDS = "trajectories.jsonl", "records.jsonl"
CHECKPOINT, STATISTICS = "checkpoint.json", "statistics.json"
OUTPUTS = (TRAJECTORIES, RECORDS, CHECKPOINT, STATISTICS, "batch_0.jsonl")


class _Numbered(Struct):
    prompt_index: int


class OutputFiles:
    """What a run writes into its folder."""

    def __init__(self, spec: RunSpec, rows: BatchRows) -> None:
        self._spec = spec
        self._rows = rows
        self.folder = Path(spec.folder)

    def append(self, index: int, body: bytes) -> None:
        """Add the line of a sample that has just ended to the file of its batch."""
        with disk_told(self._batch_file(index)) as file, file.open("ab") as out:
            out.write(unpacked(body)[0].encode() + b"\n")

    def mend(self) -> None:
        """Make every batch file hold the line of each sample that has ended, once, whatever a kill left of it."""
        batch, missing = -1, dict[int, bytes]()
        for index, _, body in self._rows.bodies(self._spec.run_id):
            if self._spec.batch_of(index) != batch:
                self._mend_batch(batch, missing)
                batch, missing = self._spec.batch_of(index), {}
            missing[index] = body
        self._mend_batch(batch, missing)

    def _mend_batch(self, batch: int, bodies: dict[int, bytes]) -> None:
        if batch < 0:
            return
        file, kept, is_whole = self.folder / f"batch_{batch}.jsonl", dict[int, bytes](), True
        wanted = set(bodies)
        if file.exists():
            for line in file.read_bytes().splitlines(keepends=True):
                index = _index_of(line)
                if index is None or index in kept or index not in wanted:
                    is_whole = False
                else:
                    kept[index] = line
        missing = [index for index in bodies if index not in kept]
        if is_whole and not missing:
            return
        with replaced(file, is_synced=False) as out:  # the rows are the truth, and there may be thousands of files
            out.writelines(kept.values())
            out.writelines(unpacked(bodies[index])[0].encode() + b"\n" for index in missing)

    def finish(self, started: float, total: int) -> JsonObject:
        """Write what a run leaves, from its rows in the order of the dataset; the statistics."""
        run_id = self._spec.run_id
        with replaced(self.folder / TRAJECTORIES) as lines, replaced(self.folder / RECORDS) as records:
            for _, state, body in self._rows.bodies(run_id):
                if state == "done":
                    line, record = unpacked(body)
                    lines.write(line.encode() + b"\n")
                    records.write(record.encode() + b"\n")
        self.checkpoint()
        told = self.statistics(started, total)
        self._write(STATISTICS, told)
        return told

    def checkpoint(self) -> None:
        """Tell who reads the files which samples have ended."""
        completed: list[int] = []
        batches: dict[str, dict[str, int]] = {}
        for row in self._rows.rows(self._spec.run_id):
            if row.state not in ("done", "dropped"):
                continue
            completed.append(row.index)
            batch = str(self._spec.batch_of(row.index))
            stats = batches.setdefault(batch, {"processed": 0, "skipped": 0, "discarded_no_reasoning": 0})
            stats["processed"] += 1
            stats["discarded_no_reasoning"] += row.reason == NO_REASONING
        told = {
            "run_name": self._spec.run_name,
            "completed_prompts": completed,
            "batch_stats": batches,
            "last_updated": timestamp(),
        }
        self._write(CHECKPOINT, told)

    def statistics(self, started: float, total: int) -> JsonObject:
        """The figures of the run as its rows have them now."""
        spec, totals, reasons, states = self._spec, Totals(), dict[str, int](), dict[str, int]()
        for row in self._rows.rows(spec.run_id):
            states[row.state] = states.get(row.state, 0) + 1
            if row.facts:
                totals.add(row.facts)
                totals.incomplete += row.state == "done" and not row.facts.get("completed", True)
            if row.reason:
                word = row.reason if row.state == "dropped" else "failed"
                reasons[word] = reasons.get(word, 0) + 1
        return {
            "run_name": spec.run_name,
            "distribution": spec.distribution,
            "total_prompts": total,
            "total_batches": -(-total // spec.batch_size),
            "batch_size": spec.batch_size,
            "model": spec.model,
            "completed_at": timestamp(),
            "duration_seconds": round(time.time() - started, 2),
            "tool_statistics": totals.tool_statistics(),
            "reasoning_statistics": totals.reasoning,
            "samples": {
                "done": states.get("done", 0),
                "dropped": states.get("dropped", 0),
                "failed": states.get("failed", 0),
            },
            "dropped": dict(sorted(reasons.items())),
            "api_calls": totals.api_calls,
            "tokens": totals.tokens,
            "cost_usd": round(totals.cost_usd, 6),
            "unpriced_samples": totals.unpriced,
            "incomplete_samples": totals.incomplete,
            "seed": spec.seed,
        }

    def _batch_file(self, index: int) -> Path:
        return self.folder / f"batch_{self._spec.batch_of(index)}.jsonl"

    def _write(self, name: str, value: JsonObject) -> None:
        with replaced(self.folder / name) as out:
            out.write(dumped(value).encode() + b"\n")


def _index_of(line: bytes) -> int | None:
    """The sample of a line; None for one that a kill has cut."""
    if not line.endswith(b"\n"):
        return None
    try:
        return from_json(line, _Numbered).prompt_index
    except msgspec.DecodeError:
        return None
