"""What to do with a file that is damaged: keep it aside, and carry all that is readable into a new one."""

# ruff: noqa: S608 - names in statements come from the schema, never from outside

import logging
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec import Struct

from hermes.state import pages, schema
from hermes.state.row_shapes import table_of
from hermes.state.schema_history import columns_of

_log = logging.getLogger(__name__)

_SIDES = ("", "-wal", "-shm", "-journal")
_TABLES = tuple(name for name in schema.TABLES if name != "schema_version")


class Salvaged(Struct, frozen=True):
    """What came of a damaged file."""

    aside: Path
    sessions: int
    messages: int
    complete: bool  # every table could be read from end to end

    def sentence(self) -> str:
        """For the person whose file it is."""
        how_much = "everything" if self.complete else "what could be read"
        return (
            f"the session file was damaged; it is kept at {str(self.aside)!r}, and {how_much} "
            f"({self.sessions} sessions, {self.messages} messages) was carried over into a new one"
        )


def salvage(path: Path) -> Salvaged:
    """Replace the damaged file at `path`. The caller holds the lock between processes and no connection."""
    aside = _set_aside(path)
    path.touch(mode=0o600)
    with closing(sqlite3.connect(path, isolation_level=None)) as new:
        new.execute("PRAGMA auto_vacuum = INCREMENTAL")
        new.execute("BEGIN IMMEDIATE")
        schema.create(new)
        complete = _copy_tables(aside, new)
        if not complete:
            _copy_pages(aside, new)
        _adopt_orphans(new)
        new.execute("DELETE FROM state_meta WHERE key IN ('fts_watermark', 'fts_format')")
        sessions = new.execute("SELECT count(*) FROM sessions").fetchone()[0]
        messages = new.execute("SELECT count(*) FROM messages").fetchone()[0]
        new.execute("COMMIT")
    return Salvaged(aside, sessions, messages, complete)


def _set_aside(path: Path) -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    aside = path.with_name(f"{path.name}.damaged-{stamp}")
    number = 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}.damaged-{stamp}-{number}")
    for side in _SIDES:
        part = path.with_name(path.name + side)
        if part.exists():
            part.rename(aside.with_name(aside.name + side))
    return aside


def _copy_tables(aside: Path, new: sqlite3.Connection) -> bool:
    complete = True
    with closing(sqlite3.connect(aside, isolation_level=None)) as old:
        old.execute("PRAGMA writable_schema = ON")  # a broken entry of the schema must not hide the other tables
        for table in _TABLES:
            wanted = tuple(schema.TABLES[table])
            try:
                present = {row[1] for row in old.execute(f"PRAGMA table_info({table})")}
            except sqlite3.DatabaseError as error:
                _log.warning("cannot read the schema of %s: %s", aside, error)
                return False
            columns = [name for name in wanted if name in present]
            if columns:
                complete &= _copy_table(old, new, table, columns)
            elif table in ("sessions", "messages"):
                complete = False
    return complete


def _copy_table(old: sqlite3.Connection, new: sqlite3.Connection, table: str, columns: list[str]) -> bool:
    """Read from both ends towards the damage."""
    names = ", ".join(columns)
    insert = f"INSERT OR IGNORE INTO {table}({names}) VALUES ({','.join('?' * len(columns))})"
    for order in ("ASC", "DESC"):
        try:
            for row in old.execute(f"SELECT {names} FROM {table} ORDER BY rowid {order}"):
                _insert(new, insert, row)
        except sqlite3.DatabaseError as error:
            _log.warning("table %s can only be read in part: %s", table, error)
            continue
        return True
    return False


def _copy_pages(aside: Path, new: sqlite3.Connection) -> None:
    for leaf in pages.leaves_of(aside):
        table = table_of([values for _, values in leaf])
        if table is None or table not in _TABLES:
            continue
        for row_id, values in leaf:
            columns = columns_of(table)[: len(values)]
            first = row_id if columns[0] in ("id", "message_id") and values[0] is None else values[0]
            insert = f"INSERT OR IGNORE INTO {table}({', '.join(columns)}) VALUES ({','.join('?' * len(columns))})"
            _insert(new, insert, (first, *values[1 : len(columns)]))


def _insert(new: sqlite3.Connection, insert: str, row: tuple[Any, ...]) -> None:
    try:
        new.execute(insert, row)
    except sqlite3.IntegrityError as error:
        _log.warning("a salvaged row is not usable: %s", error)


def _adopt_orphans(new: sqlite3.Connection) -> None:
    """Give messages whose session row is lost a session again."""
    new.execute(
        "INSERT INTO sessions(id, source, started_at) SELECT session_id, 'recovered', min(timestamp) FROM messages"
        " WHERE session_id NOT IN (SELECT id FROM sessions) GROUP BY session_id"
    )
    new.execute(
        "UPDATE sessions SET message_count = (SELECT count(*) FROM messages m WHERE m.session_id = sessions.id"
        " AND m.active = 1)"
    )
