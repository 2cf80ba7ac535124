"""Verify a file of records, or of trajectories with the records beside them; one line in memory at a time."""

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec
from msgspec import Struct, field

from hermes.batch.output_files import RECORDS, TRAJECTORIES
from hermes.batch.record import FORMAT, Renderer, verify_line, verify_record
from hermes.errors import UserError
from hermes.typed import from_json

MAX_TOLD = 20


class Verified(Struct):
    """What was proven. `missing` counts the samples of a run that its own file has no line of."""

    total: int = 0
    proven: int = 0
    calls: int = 0
    missing: int = 0
    problems: list[str] = field(default_factory=list)  # the first ones
    more_problems: int = 0

    @property
    def is_proven(self) -> bool:
        return self.total > 0 and not self.problems

    def tell(self, problem: str) -> None:
        """Keep a problem; of very many, count the rest."""
        if len(self.problems) < MAX_TOLD:
            self.problems.append(problem)
        else:
            self.more_problems += 1


def verify_file(file: Path, records: Path | None = None) -> Verified:
    """Verify each line. `UserError` when there is nothing to verify it with."""
    found = Verified()
    first = next(_lines(file), None)
    if first is None:
        raise UserError(f"{str(file)!r} is empty: there is nothing to verify")
    if records is None and _is_record(first[1]):
        _verify_records(file, found)
        return found
    beside = records or file.with_name(RECORDS)
    if not beside.is_file() or beside == file:
        raise UserError(f"there are no records beside {str(file)!r}; name them with --records")
    with beside.open("rb") as opened:
        # A run's own file has a line for each record; any other may hold some of them.
        _verify_trajectories(file, _Records(opened), found, is_whole=records is None and file.name == TRAJECTORIES)
    return found


def _verify_records(file: Path, found: Verified) -> None:
    renderer, seen = Renderer(), dict[str, int]()
    for number, record in _lines(file):
        problems = _problems(record, renderer, found)
        digest = str(record.get("sha256")) if isinstance(record, dict) else ""
        if not problems and seen.setdefault(digest, number) != number:
            problems = [f"it is the record on line {seen[digest]} once more"]
        _count(found, number, problems)


def _verify_trajectories(file: Path, records: "_Records", found: Verified, *, is_whole: bool) -> None:
    renderer, unreadable = Renderer(), 0
    for number, line in _lines(file):
        if not isinstance(line, dict):
            unreadable += 1
            _count(found, number, ["the trajectory is no JSON object"])
            continue
        match = records.of(line, number)
        if match.record is None:
            _count(found, number, [match.problem])
            continue
        problems = _problems(match.record, renderer, found)
        _count(found, number, problems or verify_line(line, match.record))
    for number in records.damaged:
        found.tell(f"line {number} of the records is no JSON object with a prompt_index")
    unmatched = records.unmatched() if is_whole else []
    if len(unmatched) > unreadable:  # else they are the lines that cannot be read, of which is told above
        found.missing = len(unmatched)
        for index in unmatched:
            found.tell(f"sample {index} has a record and no line")


def _count(found: Verified, number: int, problems: list[str]) -> None:
    found.total += 1
    found.proven += not problems
    if problems:
        found.tell(f"line {number}: {problems[0]}")


def _problems(record: Any, renderer: Renderer, found: Verified) -> list[str]:
    if not isinstance(record, dict):
        return ["the record is no JSON object"]
    rendering = verify_record(record, renderer)
    found.calls += rendering.calls
    return rendering.problems or ([] if rendering.calls else ["it has no model call"])


class _Match(Struct, frozen=True):
    """The record of a line, or why there is none."""

    record: Any
    problem: str = ""


class _RecordNumber(Struct):
    """All of a record that is needed to find it again."""

    prompt_index: int


class _RecordPlace(Struct):
    """Where a record begins."""

    offset: int
    line: int = 0  # the trajectory that it belongs to, once one has asked for it


class _Records:
    """The records of a file by the sample they are of, in any order. Only where each begins is kept in memory.

    Several runs in one file have several records of one number; a line is held against all of them that are left.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._places: dict[int, list[_RecordPlace]] = {}
        self.damaged: list[int] = []
        offset = 0
        for number, line in enumerate(file, 1):
            if line.strip():
                try:
                    index = from_json(line, _RecordNumber).prompt_index
                    self._places.setdefault(index, []).append(_RecordPlace(offset))
                except (msgspec.DecodeError, RecursionError):
                    self.damaged.append(number)
            offset += len(line)

    def of(self, line: dict[str, Any], number: int) -> _Match:
        """The record of the line `number`, which then belongs to it."""
        index = line.get("prompt_index")
        places = self._places.get(index, []) if type(index) is int else []
        free = [place for place in places if not place.line]
        if not free:
            if places:
                return _Match(None, f"sample {index} is here once more; it is on line {places[0].line} already")
            return _Match(None, "it has no record")
        found = [(place, self._read(place)) for place in free]
        place, record = next(
            ((one, record) for one, record in found if len(found) > 1 and not verify_line(line, record)), found[0]
        )
        place.line = number
        return _Match(record)

    def unmatched(self) -> list[int]:
        """The samples whose records belong to no line."""
        return [index for index, places in self._places.items() for place in places if not place.line]

    def _read(self, place: _RecordPlace) -> Any:
        self._file.seek(place.offset)
        return _parsed(self._file.readline())


def _is_record(line: Any) -> bool:
    # By either of two signs, also where it is no JSON any more: a changed byte must not make it a file of another kind.
    if isinstance(line, dict):
        return str(line.get("format", "")) == FORMAT or "segments" in line
    return isinstance(line, str) and (FORMAT in line or '"segments"' in line)


def _lines(file: Path) -> Iterator[tuple[int, Any]]:
    with file.open("rb") as lines:
        yield from ((number, _parsed(line)) for number, line in enumerate(lines, 1) if line.strip())


def _parsed(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return line.decode("utf-8", "replace")
