"""Verify a file of records, or of trajectories with the records beside them; one line in memory at a time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from hermes.batch.output_files import RECORDS
from hermes.batch.record import FORMAT, verify_line, verify_record
from hermes.errors import UserError

MAX_TOLD = 20


class Verified(Struct):
    """What was proven."""

    total: int = 0
    proven: int = 0
    calls: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def is_proven(self) -> bool:
        return self.proven == self.total > 0


def verify_file(file: Path, records: Path | None = None) -> Verified:
    """Verify each line. `UserError` when there is nothing to verify it with."""
    found = Verified()
    for number, (line, record) in enumerate(_pairs(file, records), 1):
        found.total += 1
        problems = []
        if not isinstance(record, dict):
            problems = ["it has no record" if record is None else "the record is no JSON object"]
        else:
            rendering = verify_record(record)
            found.calls += rendering.calls
            problems = list(rendering.problems)
            if line is not record:
                problems += (
                    verify_line(line, record) if isinstance(line, dict) else ["the trajectory is no JSON object"]
                )
            if not rendering.calls and not problems:
                problems = ["it has no model call"]
        found.proven += not problems
        if problems and len(found.problems) < MAX_TOLD:
            found.problems.append(f"line {number}: {problems[0]}")
    if not found.total:
        raise UserError(f"{str(file)!r} is empty: there is nothing to verify")
    return found


def _pairs(file: Path, records: Path | None) -> Iterator[tuple[Any, Any]]:
    """Each line with its record; a file of records has only those."""
    lines = _lines(file)
    first = next(lines, None)
    if first is None:
        return
    # By either of two signs, also where it is no JSON any more: a changed byte must not make it a file of another kind.
    is_record = isinstance(first, str) and (FORMAT in first or '"segments"' in first)
    if isinstance(first, dict):
        is_record = str(first.get("format", "")) == FORMAT or "segments" in first
    if records is None and is_record:
        yield first, first
        yield from ((one, one) for one in lines)
        return
    beside = records or file.with_name(RECORDS)
    if not beside.is_file() or beside == file:
        raise UserError(f"there are no records beside {str(file)!r}; name them with --records")
    theirs = _lines(beside)
    yield first, _match(first, theirs)
    for line in lines:
        yield line, _match(line, theirs)


def _match(line: Any, records: Iterator[Any]) -> Any:
    """The record of a line: both files are in the order of the dataset, and the first may be thinned out."""
    wanted = line.get("prompt_index") if isinstance(line, dict) else None
    for record in records:
        if not isinstance(record, dict) or wanted is None or record.get("prompt_index") == wanted:
            return record
    return None


def _lines(file: Path) -> Iterator[Any]:
    with file.open("rb") as lines:
        for line in lines:
            if line.strip():
                try:
                    yield msgspec.json.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    yield line.decode("utf-8", "replace")
