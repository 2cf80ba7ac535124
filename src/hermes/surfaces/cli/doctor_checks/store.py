"""Whether the sessions can be read."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing

from hermes.config import paths
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.doctor import Check, Finding, ok, problem


def run(cli: Cli) -> Iterable[Finding]:
    file = paths.state_file(cli.home)
    if not file.exists():
        yield ok("no sessions yet")
        return
    try:
        # Read only, and not through the store: opening that would mend what is to be looked at.
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as conn:
            faults = [str(row[0]) for row in conn.execute("PRAGMA quick_check(5)") if row[0] != "ok"]
            counts = conn.execute("SELECT count(*), (SELECT count(*) FROM messages) FROM sessions").fetchone()
    except sqlite3.Error as error:
        faults = [str(error)]
    if faults:
        yield problem(f"{file} is damaged: {faults[0]}", "hermes sessions repair")
        return
    yield ok(f"{counts[0]} sessions, {counts[1]} messages in {file}")


CHECK = Check(title="Sessions", run=run)
