"""Read the log files."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import click

from hermes.config import paths
from hermes.host.log_records import LEVELS, RecordFilter, open_log, record_of, rest_of, set_aside, whole_records
from hermes.host.log_records import follow as follow_log
from hermes.host.logs import NAMES
from hermes.surfaces.cli.context import Cli


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
    file, keep = folder / NAMES[name], RecordFilter(wanted)
    if not file.exists() and not follow:
        why = "this version has no gateway" if name == "gateway" else "nothing has been logged yet"
        cli.out.note(f"{file} is not there: {why}")
        return
    handle = open_log(file) if file.exists() else None
    show: Callable[[Any], None] = cli.out.json if as_json else cli.out.line
    shaped: Callable[[Iterable[str]], Iterable[Any]] = whole_records if as_json else iter
    try:
        for record in deque(shaped(keep.of(chain(set_aside(file), rest_of(handle)))), maxlen=lines):
            show(record)
        cli.out.flush()
        if follow:
            # A record is whole when the next one begins, which may be never: what is followed goes line by line.
            for line in keep.of(follow_log(file, handle)):
                show(record_of(line) if as_json else line)
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


COMMAND = logs
