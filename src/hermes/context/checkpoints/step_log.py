"""What the calls of a session changed: for each path how it was before and how it was left, in order. Blocking."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from hermes.context.checkpoints.model import State
from hermes.typed import from_json


def name_of(path: bytes) -> str:
    """A path as JSON can hold it, whatever its bytes are."""
    try:
        return path.decode()
    except UnicodeDecodeError:
        return f"\0{path.decode('latin-1')}"


def path_of(name: str) -> bytes:
    """The path that `name_of` made `name` of."""
    return name[1:].encode("latin-1") if name.startswith("\0") else name.encode()


class FileStep(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call, in one folder. `now` is None for a call whose end nobody saw."""

    id: str
    at: float
    turn: str
    tool: str
    root: str
    text: str = ""
    was: dict[str, State] = field(default_factory=dict)
    now: dict[str, State] | None = None
    message: int = 0  # of a rewind: the message that the conversation went back to, 0 for none
    undone: bool = False  # of a rewind: it was taken back itself

    @property
    def changed(self) -> list[str]:
        """The files that it changed; folders are no news to anybody."""
        return [path for path in self.was if not path.endswith("/") and (self.now or {}).get(path) != self.was[path]]


class StepLog:
    """A file for each session, only ever added to; a later line about a step takes the place of an earlier one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, session_id: str, *steps: FileStep) -> None:
        """Write the steps down."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lines = b"".join(msgspec.json.encode(step) + b"\n" for step in steps)
        fd = os.open(self._file(session_id), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(fd, lines)
        finally:
            os.close(fd)

    def of(self, session_id: str) -> list[FileStep]:
        """All steps of a session, oldest first; a line that a crash cut off is left out."""
        found: dict[str, FileStep] = {}
        for step in self._read(self._file(session_id)):
            if step.id in found and step.now is not None and not step.was:
                found[step.id] = replace(found[step.id], now=step.now)
            else:
                found[step.id] = step
        return list(found.values())

    def move(self, old: str, new: str) -> None:
        """The session goes on under another id."""
        file = self._file(old)
        if file.exists() and not self._file(new).exists():
            file.rename(self._file(new))

    def prune(self, most_turns: int, older_than: float) -> set[str]:
        """Drop sessions untouched since `older_than` and all but the last turns of others; the contents still named."""
        used: set[str] = set()
        for file in sorted(self.folder.glob("*.jsonl")) if self.folder.is_dir() else ():
            if file.stat().st_mtime < older_than:
                file.unlink(missing_ok=True)
                continue
            steps = self.of(file.stem)
            turns = list(dict.fromkeys(step.turn for step in steps))
            if len(turns) > most_turns:
                kept = set(turns[-most_turns:])
                steps = [step for step in steps if step.turn in kept]
                fresh = file.with_name(f".{file.name}")
                fresh.write_bytes(b"".join(msgspec.json.encode(step) + b"\n" for step in steps))
                fresh.replace(file)
            used.update(_contents(steps))
        return used

    def _file(self, session_id: str) -> Path:
        safe = "".join(char if char.isalnum() or char in "-_." else "_" for char in session_id)
        return self.folder / f"{safe}.jsonl"

    @staticmethod
    def _read(file: Path) -> Iterator[FileStep]:
        try:
            lines = file.read_bytes().split(b"\n")
        except FileNotFoundError:
            return
        for line in lines:
            try:
                yield from_json(line, FileStep)
            except msgspec.DecodeError:
                continue


def _contents(steps: Iterable[FileStep]) -> Iterator[str]:
    for step in steps:
        for state in (*step.was.values(), *(step.now or {}).values()):
            if name := state.partition(" ")[2]:
                yield name
