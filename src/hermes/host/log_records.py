"""The records of log files: those that are wanted, those that rotation set aside, those that are yet to come."""

import os
import re
import time
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TextIO

from hermes.errors import UserError

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LINE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d+ ([A-Z]+) \[(.*?)\] (\S+): ")
AGE = re.compile(r"(\d+)\s*([smhdw])")
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
POLL_S = 0.3


def record_of(line: str) -> dict[str, str]:
    """A line as data; one that goes on with a record has only its text."""
    head = LINE.match(line)
    if head is None:
        return {"message": line.strip()}
    at, level, session, logger = head.groups()
    return {"time": at, "level": level, "session": session, "logger": logger, "message": line[head.end() :]}


def whole_records(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Whole records: a traceback belongs to the message it is under."""
    last: dict[str, str] | None = None
    for line in lines:
        made = record_of(line)
        if "level" in made or last is None:
            if last is not None:
                yield last
            last = made
        else:
            last["message"] += f"\n{made['message']}"
    if last is not None:
        yield last


def set_aside(file: Path) -> Iterator[str]:
    """The lines of the files that rotation set aside, oldest first."""
    older = [each for each in file.parent.glob(f"{file.name}.*") if each.suffix[1:].isdigit()]
    for each in sorted(older, key=lambda one: -int(one.suffix[1:])):
        with open_log(each) as handle:
            yield from rest_of(handle)


class RecordFilter:
    """Which records to show; the lines of a traceback go with their record."""

    def __init__(self, wanted: dict[str, str | None]) -> None:
        level = wanted.get("level")
        self._levels = LEVELS[LEVELS.index(level.upper()) :] if level else None
        self._session = wanted.get("session")
        self._component = wanted.get("component")
        since = wanted.get("since")
        self._since = _since(since) if since else None

    def of(self, lines: Iterator[str]) -> Iterator[str]:
        """The wanted ones of `lines`."""
        showing = False
        for line in lines:
            head = LINE.match(line)
            if head is not None:
                showing = self._matches(*head.groups())
            if showing:
                yield line

    def _matches(self, at: str, level: str, session: str, logger: str) -> bool:
        return (
            (self._levels is None or level in self._levels)
            and (self._session is None or session.startswith(self._session))
            and (self._component is None or self._component in logger)
            and (self._since is None or at >= self._since)
        )


def _since(age: str) -> str:
    match = AGE.fullmatch(age.strip())
    if match is None:
        raise UserError(f"cannot read {age!r} as an age; write 30m, 2h or 3d")
    moment = datetime.now() - timedelta(**{UNITS[match[2]]: int(match[1])})  # noqa: DTZ005 - logs are in local time
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def open_log(file: Path) -> TextIO:
    """A log file, to be read whatever is in it."""
    return file.open(encoding="utf-8", errors="replace")


def rest_of(handle: TextIO | None) -> Iterator[str]:
    """The lines from where `handle` stands to the end."""
    while handle is not None and (line := handle.readline()):
        yield line.rstrip("\n")


def follow(file: Path, handle: TextIO | None) -> Iterator[str]:
    """What is added after where `handle` stands, also after the file was rotated; ends with Ctrl-C."""
    while True:
        yield from rest_of(handle)
        time.sleep(POLL_S)
        if file.exists() and (handle is None or file.stat().st_ino != os.fstat(handle.fileno()).st_ino):
            yield from rest_of(handle)
            if handle is not None:
                handle.close()
            handle = open_log(file)
