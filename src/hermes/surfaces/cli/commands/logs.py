"""Read the log files."""

import os
import re
import time
from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TextIO

import click

from hermes.config import paths
from hermes.errors import UserError
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.logs import NAMES

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LINE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d+ ([A-Z]+) \[(.*?)\] (\S+): ")
AGE = re.compile(r"(\d+)\s*([smhdw])")
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
POLL_S = 0.3


@click.command("logs")
@click.argument("name", type=click.Choice([*NAMES, "list"]), default="agent")
@click.option("-n", "--lines", type=click.IntRange(min=0), default=50, help="How many of the newest records.")
@click.option("-f", "--follow", is_flag=True, help="Go on with what is written from now on.")
@click.option("--level", type=click.Choice(LEVELS, case_sensitive=False), help="This level and above.")
@click.option("--session", metavar="ID", help="Records of this session; a prefix is enough.")
@click.option("--since", metavar="AGE", help="Not older than 30m, 2h, 3d.")
@click.option("--component", metavar="NAME", help="Records of loggers with this in their name.")
@click.pass_obj
def logs(cli: Cli, /, name: str, lines: int, follow: bool, **wanted: str | None) -> None:
    """Read the log files: agent, errors or gateway; `list` tells where they are."""
    folder = paths.logs_dir(cli.home)
    if name == "list":
        rows = [[each.name, f"{each.stat().st_size / 1000:.0f} kB", each] for each in sorted(folder.glob("*.log*"))]
        cli.out.table(["LOG", "SIZE", "FILE"], rows, flexible=2)
        return
    file = folder / NAMES[name]
    if not file.exists() and not follow:
        cli.out.note(f"{file} is not there: nothing has been logged yet")
        return
    keep = Wanted(wanted)
    handle = _open(file) if file.exists() else None
    try:
        for record in deque(keep.of(_rest(handle)), maxlen=lines):
            cli.out.line(record)
        cli.out.flush()
        if follow:
            for record in keep.of(_follow(file, handle)):
                cli.out.write(f"{record}\n")
    finally:
        if handle is not None:
            handle.close()


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
