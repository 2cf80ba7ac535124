"""MEMORY.md and USER.md: read at any time, changed under one lock, with the history beside them.

A change is three steps under the lock: the new file beside the old one, the line in the history, the rename. Killed
after the second, the next who comes finishes the third; killed before it, the write was never acknowledged and leaves
nothing. A reader without the lock sees the old file or the new one, never a mixture. What a person wrote with an editor
is taken as it is, and becomes lines of the history when the files are opened next.
"""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import SequenceMatcher
from pathlib import Path

from msgspec import Struct

from hermes.config import paths
from hermes.context.memory.entries import (
    FILES,
    TARGETS,
    EntryChange,
    EntryRefusal,
    Operation,
    Target,
    applied,
    joined,
    odd,
    parsed,
    usage,
)
from hermes.context.memory.memory_history import MemoryHistory, MemoryRecord, MemoryWriter, digest, replayed
from hermes.context.memory.memory_use import MemoryUse

LIMITS: dict[Target, int] = {"memory": 2200, "user": 1375}
_ALIKE = 0.5  # so much of two entries must agree for one to count as a new wording of the other
_LEAST_SHOWN = 3


class Written(Struct, frozen=True):
    """What came of a write."""

    entries: list[str]
    changes: list[EntryChange]
    usage: str


class MemoryFiles:
    """The two files of one home. Every method may be called from any thread and process."""

    def __init__(self, home: Path, limits: Mapping[Target, int] | None = None) -> None:
        self.folder = paths.memories_dir(home)
        self.limits = {**LIMITS, **(limits or {})}
        self.history = MemoryHistory(self.folder / "history.jsonl")
        self.use = MemoryUse(self.folder / "use.json")

    def path(self, target: Target) -> Path:
        return self.folder / FILES[target]

    def entries(self, target: Target) -> list[str]:
        """What is kept now; nothing where there is no file."""
        return parsed(self._text(target))

    def usage(self, target: Target) -> str:
        return usage(self.entries(target), self.limits[target])

    def write(
        self,
        target: Target,
        operations: Sequence[Operation],
        writer: MemoryWriter,
        check: Callable[[Sequence[str], str], None] | None = None,
    ) -> Written:
        """Do all operations or none; `EntryRefusal` says why not.

        `check` is called under the lock with the entries and each text that is about to be kept, and may refuse it.
        """
        with self.locked():
            self._settle(target, writer.at)
            self._refuse_odd(target, operations, writer.at)
            before = self.entries(target)
            if check is not None:
                for operation in operations:
                    if operation.action != "remove" and operation.content.strip():
                        check(before, operation.content.strip())
            now, changes = applied(before, operations, self.limits[target], self._full(target))
            if changes:
                self._put(target, before, now, changes, writer)
            return Written(now, changes, usage(now, self.limits[target]))

    def replace_all(self, target: Target, entries: Sequence[str], writer: MemoryWriter) -> list[EntryChange]:
        """Put these entries in the place of all; what differs is in the history. For people, whose word counts."""
        with self.locked():
            self._settle(target, writer.at)
            before, now = self.entries(target), parsed(joined(entries))
            changes = difference(before, now)
            if changes:
                self._put(target, before, now, changes, writer)
            return changes

    def undo(self, number: int | None, writer: MemoryWriter) -> MemoryRecord:
        """Take back a change, by default the newest; `EntryRefusal` when it cannot be taken back any more."""
        with self.locked():
            for target in TARGETS:
                self._settle(target, writer.at)
            records = self.history.read()
            undone = _undone(records)
            open_ones = [one for one in records if one.number not in undone and not one.note.startswith("undo of ")]
            found = [one for one in open_ones if number is None or one.number == number]
            if not found:
                raise EntryRefusal(
                    "there is nothing to undo" if number is None else f"there is no change {number} to undo"
                )
            record = found[-1]
            before = self.entries(record.target)
            change, now = _taken_back(record, before)
            noted = MemoryWriter(
                by=writer.by, at=writer.at, session_id=writer.session_id, note=f"undo of {record.number}"
            )
            self._put(record.target, before, now, [change], noted)
            return record

    def settled(self, at: float) -> list[MemoryRecord]:
        """The whole history, with what people have edited since taken in."""
        if not self.folder.is_dir():
            return []
        with self.locked():
            for target in TARGETS:
                self._settle(target, at)
            return self.history.read()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else changes the files meanwhile. The kernel drops the lock of a process that dies."""
        paths.made(self.folder)
        handle = os.open(self.folder / f"{FILES['memory']}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    # -- under the lock ----------------------------------------------------------------------------------------------

    def _put(
        self,
        target: Target,
        before: Sequence[str],
        now: Sequence[str],
        changes: Sequence[EntryChange],
        writer: MemoryWriter,
    ) -> None:
        fresh = self._fresh(target)
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as out:
            out.write(joined(now).encode("utf-8", "surrogateescape"))
            out.flush()
            os.fsync(out.fileno())
        self.history.append(target, changes, writer, (digest(before), digest(now)))
        fresh.replace(self.path(target))

    def _settle(self, target: Target, at: float) -> None:
        """Finish what a kill cut off, then take in what a person has edited."""
        last, now = self.history.last(target), self.entries(target)
        fresh = self._fresh(target)
        if fresh.exists():
            made = parsed(fresh.read_bytes().decode("utf-8", "surrogateescape"))
            if last is not None and digest(made) == last.after and digest(now) == last.before:
                fresh.replace(self.path(target))
                return
            fresh.unlink()
        if (last.after if last is not None else digest([])) == digest(now):
            return
        known = replayed(self.history.read(), target)
        changes = difference(known, now)
        if changes:
            writer = MemoryWriter(by="person", at=self._edited_at(target, at), note="edited by hand")
            self.history.append(target, changes, writer, (digest(known), digest(now)))

    def _edited_at(self, target: Target, at: float) -> float:
        try:
            return min(at, self.path(target).stat().st_mtime)
        except FileNotFoundError:
            return at

    def _refuse_odd(self, target: Target, operations: Sequence[Operation], at: float) -> None:
        """A file that only a person can have written is never rewritten; adding to its end leaves it as it is."""
        why = odd(self._text(target), self.limits[target])
        if not why or (all(operation.action == "add" for operation in operations) and len(operations) == 1):
            return
        copy = self.path(target).with_name(f"{FILES[target]}.bak.{int(at)}")
        shutil.copyfile(self.path(target), copy)
        raise EntryRefusal(
            f"{FILES[target]} was edited by hand, and {why}; it is left as it is",
            drift_backup=str(copy),
            remediation="ask the user to mend the file with `hermes memory edit`; only add works until then",
        )

    def _full(self, target: Target) -> Callable[[list[str]], dict[str, object]]:
        def told(entries: list[str]) -> dict[str, object]:
            """What could make room: the entries that are oldest, and those that were of least use."""
            since = dict.fromkeys(entries, 0.0)
            for record in self.history.read():
                if record.target == target and record.new in since:
                    since[record.new] = record.at
            counts = self.use.counts()
            oldest = sorted(entries, key=lambda entry: since[entry])
            idle = sorted(entries, key=lambda entry: (counts.get(entry, 0), since[entry]))
            return {"oldest": oldest[:_LEAST_SHOWN], "least_used": idle[:_LEAST_SHOWN]}

        return told

    def _text(self, target: Target) -> str:
        try:
            return self.path(target).read_bytes().decode("utf-8", "surrogateescape")
        except FileNotFoundError:
            return ""

    def _fresh(self, target: Target) -> Path:
        return self.folder / f"{FILES[target]}.new"


def difference(known: Sequence[str], now: Sequence[str]) -> list[EntryChange]:
    """What a person did to one list to make the other; an entry that resembles one that went is its new wording."""
    gone = [entry for entry in known if entry not in now]
    changes: list[EntryChange] = []
    for entry in now:
        if entry in known:
            continue
        near = max(gone, key=lambda old: SequenceMatcher(None, old, entry).ratio(), default="")
        if near and SequenceMatcher(None, near, entry).ratio() >= _ALIKE:
            gone.remove(near)
            changes.append(EntryChange("replace", entry, near))
        else:
            changes.append(EntryChange("add", entry, ""))
    return [*changes, *(EntryChange("remove", "", entry) for entry in gone)]


def _undone(records: Sequence[MemoryRecord]) -> set[int]:
    notes = (record.note.removeprefix("undo of ") for record in records if record.note.startswith("undo of "))
    return {int(note) for note in notes if note.isdigit()}


def _taken_back(record: MemoryRecord, before: Sequence[str]) -> tuple[EntryChange, list[str]]:
    now = list(before)
    if record.action == "remove":
        if record.old in now:
            raise EntryRefusal("the entry is there again already")
        return EntryChange("add", record.old, ""), [*now, record.old]
    if record.new not in now:
        raise EntryRefusal(f"change {record.number} cannot be undone: its entry was changed again since")
    place = now.index(record.new)
    if record.action == "add" or record.old in now:
        del now[place]
        return EntryChange("remove", "", record.new), now
    now[place] = record.old
    return EntryChange("replace", record.old, record.new), now
