"""Read the log files."""

import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

import click

from hermes.config import paths
from hermes.errors import UserError
from hermes.host.logs import NAMES
from hermes.surfaces.cli.context import Cli

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LINE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d+ ([A-Z]+) \[(.*?)\] (\S+): ")
AGE = re.compile(r"(\d+)\s*([smhdw])")
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
POLL_S = 0.3


@click.command("logs")
@click.argument("name", type=click.Choice([*NAMES, "list"]), default="agent", metavar="[agent|errors|list]")
@click.option("-n", "--lines", type=click.IntRange(min=0), default=50, help="How many of the newest records.")
@click.option("-f", "--follow", is_flag=True, help="Go on with what is written from now on.")
@click.option("--level", type=click.Choice(LEVELS, case_sensitive=False), help="This level and above.")
@click.option("--session", metavar="ID", help="Records of this session; a prefix is enough.")
@click.option("--since", metavar="AGE", help="Not older than 30m, 2h, 3d.")
@click.option("--component", metavar="NAME", help="Records of loggers with this in their name.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a record.")
@click.pass_obj
def logs(cli: Cli, /, name: str, lines: int, follow: bool, as_json: bool, **wanted: str | None) -> None:
    """Read the log files: agent or errors; `list` tells where they are."""
    folder = paths.logs_dir(cli.home)
    if name == "list":
        _list(cli, sorted(folder.glob("*.log*")), as_json=as_json)
        return
    file, keep = folder / NAMES[name], Wanted(wanted)
    if not file.exists() and not follow:
        why = "this version has no gateway" if name == "gateway" else "nothing has been logged yet"
        cli.out.note(f"{file} is not there: {why}")
        return
    handle = _open(file) if file.exists() else None
    show: Callable[[Any], None] = cli.out.json if as_json else cli.out.line
    shaped: Callable[[Iterable[str]], Iterable[Any]] = _records if as_json else iter
    try:
        for record in deque(shaped(keep.of(chain(_set_aside(file), _rest(handle)))), maxlen=lines):
            show(record)
        cli.out.flush()
        if follow:
            # A record is whole when the next one begins, which may be never: what is followed goes line by line.
            for line in keep.of(_follow(file, handle)):
                show(_record(line) if as_json else line)
                cli.out.flush()
    finally:
        if handle is not None:
            handle.close()


def _list(cli: Cli, files: Sequence[Path], *, as_json: bool) -> None:
    facts = [{"name": each.name, "size_bytes": each.stat().st_size, "file": str(each)} for each in files]
    if as_json:
        cli.out.json(facts)
        return
    if not files:
        cli.out.note("Nothing has been logged yet.")
        return
    rows = [[each.name, f"{each.stat().st_size / 1000:.0f} kB", each] for each in files]
    cli.out.table(["LOG", "SIZE", "FILE"], rows, flexible=2)


def _record(line: str) -> dict[str, str]:
    """A line as data; one that goes on with a record has only its text."""
    head = LINE.match(line)
    if head is None:
        return {"message": line.strip()}
    at, level, session, logger = head.groups()
    return {"time": at, "level": level, "session": session, "logger": logger, "message": line[head.end() :]}


def _records(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Whole records: a traceback belongs to the message it is under."""
    last: dict[str, str] | None = None
    for line in lines:
        made = _record(line)
        if "level" in made or last is None:
            if last is not None:
                yield last
            last = made
        else:
            last["message"] += f"\n{made['message']}"
    if last is not None:
        yield last


def _set_aside(file: Path) -> Iterator[str]:
    """The lines of the files that rotation set aside, oldest first."""
    older = [each for each in file.parent.glob(f"{file.name}.*") if each.suffix[1:].isdigit()]
    for each in sorted(older, key=lambda one: -int(one.suffix[1:])):
        with _open(each) as handle:
            yield from _rest(handle)


class Wanted:
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


def _open(file: Path) -> TextIO:
    return file.open(encoding="utf-8", errors="replace")


def _rest(handle: TextIO | None) -> Iterator[str]:
    """The lines from where `handle` stands to the end."""
    while handle is not None and (line := handle.readline()):
        yield line.rstrip("\n")


def _follow(file: Path, handle: TextIO | None) -> Iterator[str]:
    """What is added after where `handle` stands, also after the file was rotated; ends with Ctrl-C."""
    while True:
        yield from _rest(handle)
        time.sleep(POLL_S)
        if file.exists() and (handle is None or file.stat().st_ino != os.fstat(handle.fileno()).st_ino):
            yield from _rest(handle)
            if handle is not None:
                handle.close()
            handle = _open(file)


COMMAND = logs
