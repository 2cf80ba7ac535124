"""What a compression has made so far, in a file beside its output: whoever goes on with it pays for nothing twice.

The open file is also the lock of the output. The kernel drops it with the process, so it cannot outlive its owner.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Struct

from hermes.batch.compress import MadeLine
from hermes.batch.replaced_file import disk_told
from hermes.errors import UserError
from hermes.typed import from_json


class _JournalEntry(Struct, frozen=True):
    """A line of the file: what became of the line `key`, after so many seconds of work in all."""

    key: str
    made: MadeLine
    seconds: float


class CompressJournal:
    """Lines that are made, by key. Only where they are in the file is kept in memory, for there may be many."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self._file = file
        self._path = path
        self._places: dict[str, int] = {}
        self._calls: dict[str, int] = {}  # of lines that failed: asked so often in vain
        self.seconds = 0.0
        self.is_costly = False  # holds a summary, and not only what was counted
        self._read()

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def get(self, key: str) -> MadeLine:
        """The line of `key`, which must be here."""
        self._file.seek(self._places[key])
        return from_json(self._file.readline(), _JournalEntry).made

    def calls_in_vain(self, key: str) -> int:
        """How often a summary of the line was asked for before, without any coming of it."""
        return self._calls.get(key, 0)

    def add(self, key: str, made: MadeLine, seconds: float) -> None:
        """Keep a line; one that failed is only counted, and is tried again by the next run."""
        place = self._file.seek(0, os.SEEK_END)
        self._file.write(msgspec.json.encode(_JournalEntry(key, made, seconds)) + b"\n")
        self._file.flush()
        self._note(key, made, place)

    def remove(self) -> None:
        """All of it is in the output now."""
        self._path.unlink()

    def _note(self, key: str, made: MadeLine, place: int) -> None:
        self.is_costly = self.is_costly or made.text is not None
        if made.figures.failed:
            self._calls[key] = made.figures.summary_calls
        else:
            self._places[key] = place

    def _read(self) -> None:
        place = 0
        for line in self._file:
            if not line.endswith(b"\n"):  # a kill has cut it; what is added next must not stand behind it
                self._file.truncate(place)
                break
            try:
                entry = from_json(line, _JournalEntry)
            except msgspec.MsgspecError:
                pass  # of another version
            else:
                self._note(entry.key, entry.made, place)
                self.seconds = entry.seconds
            place += len(line)


@contextmanager
def open_journal(output: Path) -> Iterator[CompressJournal]:
    """The journal of `output`, held; `UserError` while another process holds it."""
    path = output.with_name(f"{output.name}.partial")
    with disk_told(output):
        output.parent.mkdir(parents=True, exist_ok=True)
        with _held(path, output) as file:
            journal = CompressJournal(file, path)
            try:
                yield journal
            finally:
                if not journal.is_costly:
                    path.unlink(missing_ok=True)


def _held(path: Path, output: Path) -> IO[bytes]:
    while True:
        with ExitStack() as opened:
            file = opened.enter_context(path.open("a+b"))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UserError(f"another process is writing {str(output)!r}; wait until it has ended") from error
            # Its holder may have come to an end between our two steps and have removed it: then this one is nobody's.
            if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
                opened.pop_all()
                file.seek(0)
                return file
