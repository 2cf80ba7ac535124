"""How often each skill was loaded, when last, and how the turn went: lines in a file that several processes add to."""

import fcntl
import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from hermes.config import paths
from hermes.typed import from_json

FILE = ".usage.jsonl"
_MOST_BYTES = 256 * 1024  # then the lines are summed up
log = logging.getLogger(__name__)


class SkillUse(Struct, frozen=True, omit_defaults=True):
    """One line: so many loads, and of those, turns that ended badly. A line of a sum holds many."""

    name: str
    loads: int = 0
    failures: int = 0
    at: float = 0.0
    session: str = ""


class SkillUsage(Struct, frozen=True):
    """What all lines say of one skill."""

    loads: int = 0
    failures: int = 0
    last: float = 0.0


class UsageLog:
    """The file in a folder of skills. A line is one write, so a kill can lose the last line and no other."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE

    def loaded(self, name: str, session: str) -> None:
        """A skill was given to the model."""
        self._add(SkillUse(name, loads=1, at=time.time(), session=session))

    def failed(self, name: str, session: str) -> None:
        """The turn it was loaded in came to nothing, or its last command failed."""
        self._add(SkillUse(name, failures=1, at=time.time(), session=session))

    def totals(self) -> dict[str, SkillUsage]:
        """By name."""
        try:
            data = self._file.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            log.warning("the usage of skills cannot be read: %s", error)
            return {}
        return _summed(data)

    def counts(self) -> dict[str, int]:
        """How often each was loaded."""
        return {name: one.loads for name, one in self.totals().items() if one.loads}

    def forget(self, name: str) -> None:
        """The skill is gone: a later one of its name begins at zero."""
        with self._locked() as fd:
            kept = {other: one for other, one in _summed(_all_of(fd)).items() if other != name}
            self._replace(kept)

    def _add(self, use: SkillUse) -> None:
        try:
            with self._locked() as fd:
                if os.fstat(fd).st_size > _MOST_BYTES:
                    self._replace(_summed(_all_of(fd) + b"\n" + msgspec.json.encode(use)))
                else:
                    os.write(fd, msgspec.json.encode(use) + b"\n")
        except OSError as error:  # a count is no reason to refuse a skill
            log.warning("the use of the skill %r was not counted: %s", use.name, error)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The file, held against other writers. One that was replaced meanwhile is opened again."""
        paths.made(self._file.parent)
        while True:
            fd = os.open(self._file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                if _is_still(fd, self._file):
                    yield fd
                    return
            finally:
                os.close(fd)

    def _replace(self, totals: Mapping[str, SkillUsage]) -> None:
        lines = [SkillUse(name, one.loads, one.failures, one.last) for name, one in totals.items()]
        paths.write_private(self._file, "".join(f"{msgspec.json.encode(line).decode()}\n" for line in lines))


def _is_still(fd: int, file: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), file.stat())
    except FileNotFoundError:
        return False


def _all_of(fd: int) -> bytes:
    return os.pread(fd, 64 * 1024 * 1024, 0)


def _summed(data: bytes) -> dict[str, SkillUsage]:
    totals: dict[str, SkillUsage] = {}
    broken = 0
    for line in data.splitlines():
        try:
            use = from_json(line, SkillUse)
        except msgspec.DecodeError:
            broken += 1
            continue
        now = totals.get(use.name, SkillUsage())
        last = max(now.last, use.at) if use.loads else now.last
        totals[use.name] = SkillUsage(now.loads + use.loads, now.failures + use.failures, last)
    if broken:
        log.info("%d lines of the usage of skills cannot be read, and do not count", broken)
    return totals
