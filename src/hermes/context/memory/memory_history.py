"""What was ever kept: a line for each change of a memory file, with when, where, by whom, and what it replaced.

A line is written before the file it tells of is renamed into its place, with the digests of the file before and after.
Whoever opens the files next can so finish what a kill has cut off, and tell it from what a person did with an editor.
"""

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from hermes.context.memory.entries import Action, EntryChange, Target, joined
from hermes.typed import from_json

Author: TypeAlias = Literal["person", "agent", "review"]
_TAIL_BYTES = 64 * 1024
_ENCODER = msgspec.json.Encoder()


class MemoryRecord(Struct, frozen=True, kw_only=True):
    """One change."""

    number: int
    at: float
    target: Target
    action: Action
    by: Author
    new: str = ""
    old: str = ""
    session_id: str = ""
    note: str = ""  # where the words came from, or what was undone
    before: str = ""  # digests of the file: of all changes of one write the first and the last state
    after: str = ""


class MemoryWriter(Struct, frozen=True, kw_only=True):
    """Who changes something, from where."""

    by: Author
    at: float
    session_id: str = ""
    note: str = ""


def replayed(records: Iterable[MemoryRecord], target: Target) -> list[str]:
    """The entries that all these changes of one file lead to."""
    now: list[str] = []
    for record in records:
        if record.target != target:
            continue
        if record.action == "add":
            now.append(record.new)
        elif record.old in now:
            place = now.index(record.old)
            now[place : place + 1] = [record.new] if record.action == "replace" else []
    return now


def digest(entries: Sequence[str]) -> str:
    """A short name for a state of a file, whatever blank lines are around its entries."""
    return hashlib.sha256(joined(entries).encode("utf-8", "surrogatepass")).hexdigest()[:16]


class MemoryHistory:
    """The lines of one home. All methods that write expect the lock of the files to be held."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def read(self) -> list[MemoryRecord]:
        """Every change, oldest first; a line that cannot be read is passed over."""
        try:
            lines = self.file.read_bytes().split(b"\n")
        except FileNotFoundError:
            return []
        return [record for line in lines if line and (record := _record(line)) is not None]

    def last(self, target: Target) -> MemoryRecord | None:
        """The last line about this file, read from the end of the history."""
        for reach in (_TAIL_BYTES, 1 << 62):
            found, whole = self._end(reach)
            own = [record for record in found if record.target == target]
            if own or whole:
                return own[-1] if own else None
        return None

    def append(
        self, target: Target, changes: Iterable[EntryChange], writer: MemoryWriter, states: tuple[str, str]
    ) -> None:
        """Write the changes that turn the first state into the second; durable when it returns."""
        end = self._whole_end()
        number = self._number()
        lines = b"".join(
            _ENCODER.encode(
                MemoryRecord(
                    number=number + place,
                    at=writer.at,
                    target=target,
                    action=change.action,
                    by=writer.by,
                    new=change.new,
                    old=change.old,
                    session_id=writer.session_id,
                    note=writer.note,
                    before=states[0],
                    after=states[1],
                )
            )
            + b"\n"
            for place, change in enumerate(changes, 1)
        )
        handle = os.open(self.file, os.O_WRONLY | os.O_CREAT, 0o600)
        with os.fdopen(handle, "r+b") as out:
            out.truncate(end)  # what a kill left of a line
            out.seek(end)
            out.write(lines)
            out.flush()
            os.fsync(out.fileno())

    def _end(self, reach: int) -> tuple[list[MemoryRecord], bool]:
        """The records in the last `reach` bytes, and whether these are all."""
        try:
            with self.file.open("rb") as opened:
                size = opened.seek(0, os.SEEK_END)
                start = max(0, size - reach)
                opened.seek(start)
                lines = opened.read().split(b"\n")
        except FileNotFoundError:
            return [], True
        if start:
            lines = lines[1:]
        return [record for line in lines if line and (record := _record(line)) is not None], start == 0

    def _number(self) -> int:
        found, whole = self._end(_TAIL_BYTES)
        if not found and not whole:
            found, _ = self._end(1 << 62)
        return max((record.number for record in found), default=0)

    def _whole_end(self) -> int:
        """Where the last whole line ends."""
        try:
            with self.file.open("rb") as opened:
                size = opened.seek(0, os.SEEK_END)
                at = size
                while at:
                    at = max(0, at - _TAIL_BYTES)
                    opened.seek(at)
                    place = opened.read(_TAIL_BYTES).rfind(b"\n")
                    if place >= 0:
                        return at + place + 1
                return 0
        except FileNotFoundError:
            return 0


def _record(line: bytes) -> MemoryRecord | None:
    try:
        return from_json(line, MemoryRecord)
    except (msgspec.DecodeError, UnicodeDecodeError):  # torn by a kill, or a person's own; `doctor` counts them
        return None
