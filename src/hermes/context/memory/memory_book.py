"""Memory as a person looks at it and changes it: what `hermes memory` and `/memory` tell and do."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from hermes.context.memory.entries import FILES, TARGETS, EntryRefusal, Operation, Target, usage
from hermes.context.memory.memory_files import MemoryFiles
from hermes.context.memory.memory_history import MemoryRecord, MemoryWriter
from hermes.context.memory.memory_tool import take
from hermes.context.memory.proposals import Proposal, Proposals
from hermes.errors import UserError

LETTERS: dict[str, Target] = {"m": "memory", "u": "user"}


class KeptEntry(Struct, frozen=True, kw_only=True):
    """One entry with what the history knows of it."""

    name: str  # M1, U2
    target: Target
    text: str
    since: float | None = None
    by: str = ""
    session_id: str = ""
    used: int = 0


class MemoryBook:
    """The memory of one home, for people: whatever they say counts, and is part of the history."""

    def __init__(
        self, home: Path, limits: dict[Target, int] | None = None, now: Callable[[], float] = time.time
    ) -> None:
        self.files = MemoryFiles(home, limits)
        self.proposals = Proposals(self.files)
        self._now = now

    def entries(self, target: Target | None = None) -> list[KeptEntry]:
        """All that is kept, with who wrote it and when."""
        records = self.files.settled(self._now())
        newest = {(record.target, record.new): record for record in records if record.new}
        counts = self.files.use.counts()
        found = []
        for one in TARGETS if target is None else (target,):
            for place, text in enumerate(self.files.entries(one), 1):
                record = newest.get((one, text))
                known = (record.at, record.by, record.session_id) if record else (None, "", "")
                name = f"{one[0].upper()}{place}"
                found.append(
                    KeptEntry(
                        name=name,
                        target=one,
                        text=text,
                        since=known[0],
                        by=known[1],
                        session_id=known[2],
                        used=counts.get(text, 0),
                    )
                )
        return found

    def history(self) -> list[MemoryRecord]:
        return self.files.settled(self._now())

    def undo(self, number: int | None) -> str:
        """Take back a change; what was done, in a sentence."""
        record = self._done(lambda: self.files.undo(number, self._writer()))
        was = {"add": "is gone again", "remove": "is back", "replace": "is as it was"}[record.action]
        return f"Undone: change {record.number}; the entry {was}: {_short(record.old or record.new)}"

    def forget(self, words: str) -> str:
        """Remove the entry of this name (M1) or with these words; it is not recalled from old sessions either."""
        entry = self.find(words)
        operation = Operation(action="remove", old_text=entry.text)
        try:
            self.files.write(entry.target, [operation], self._writer("forgotten"))
        except EntryRefusal:  # its words are in another entry as well, or the file is odd: the rest stays as it is
            rest = [text for text in self.files.entries(entry.target) if text != entry.text]
            self.files.replace_all(entry.target, rest, self._writer("forgotten"))
        return f"Forgotten: {_short(entry.text)} (hermes memory undo brings it back)"

    def find(self, words: str) -> KeptEntry:
        """The one entry that is meant; `UserError` when there is none, or more."""
        known = self.entries()
        named = [one for one in known if one.name.lower() == words.strip().lower()]
        found = named or [one for one in known if words.strip().lower() in one.text.lower()]
        if not words.strip() or not found:
            raise UserError(f"no entry has {words!r} in it; see: hermes memory list")
        if len(found) > 1:
            raise UserError(f"{len(found)} entries have {words!r} in them: {', '.join(one.name for one in found)}")
        return found[0]

    def take(self, number: int) -> str:
        """Keep what was proposed."""
        return f"Kept: {_proposed(take(self.files, self.proposals, number, self._now()))}"

    def drop(self, number: int) -> str:
        """Throw away what was proposed."""
        return f"Thrown away: {_proposed(self.proposals.take_out(number))}"

    def reset(self, targets: Sequence[Target]) -> str:
        """Remove every entry; the history keeps them."""
        counts = [len(self.files.replace_all(target, [], self._writer("reset"))) for target in targets]
        return f"{sum(counts)} entries removed; the history has them (hermes memory history, hermes memory undo NUMBER)"

    def status(self) -> list[str]:
        """How full the files are, and what waits."""
        lines = []
        for target in TARGETS:
            entries = self.files.entries(target)
            told = usage(entries, self.files.limits[target])
            lines.append(f"{FILES[target]}: {len(entries)} entries, {told}")
        waiting = len(self.proposals.waiting())
        if waiting:
            lines.append(f"{waiting} proposal{'s' * (waiting != 1)} waiting for a yes: hermes memory review")
        return lines

    def _writer(self, note: str = "") -> MemoryWriter:
        return MemoryWriter(by="person", at=self._now(), note=note)

    def _done(self, work: Callable[[], MemoryRecord]) -> MemoryRecord:
        try:
            return work()
        except EntryRefusal as refused:
            raise UserError(refused.text) from refused


def history_lines(records: Sequence[MemoryRecord]) -> list[str]:
    """The history, newest first, a line or two for each change."""
    lines = []
    for one in reversed(records):
        who = {"person": "you", "agent": "the agent", "review": "the review"}[one.by]
        where = f", session {one.session_id}" if one.session_id else ""
        note = f" ({one.note})" if one.note else ""
        head = f"{one.number:>4}  {when(one.at)}  {one.target:6}  {one.action:7}  {who}{where}{note}"
        lines += [
            head,
            *([f"      - {_short(one.old)}"] if one.old else []),
            *([f"      + {_short(one.new)}"] if one.new else []),
        ]
    return lines


def when(at: float) -> str:
    """A time as this machine's user reads it."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def _proposed(proposal: Proposal) -> str:
    return _short(proposal.operation.content or proposal.operation.old_text)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else line[:199] + "…"
