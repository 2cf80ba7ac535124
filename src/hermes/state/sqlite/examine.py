"""A look through a whole state file, which changes nothing: what in it is damaged, in words, and how much it holds."""

# ruff: noqa: S608 - names in statements come from the schema, never from outside

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct

from hermes.state import schema
from hermes.state.codec import sha256
from hermes.state.sqlite import tables
from hermes.state.sqlite.connection import is_damage
from hermes.state.sqlite.lock import Seal
from hermes.state.sqlite.row_shapes import Garbled, flaws, text_or_garbled
from hermes.state.sqlite.schema_history import columns_of

MOST = 5  # faults that are told


def faults_of(path: Path, vfs: str | None = None) -> list[str]:
    """The first few faults of the file at `path`, none when it is sound; a new, empty file is."""
    if path.stat().st_size == 0:
        return ["it is empty, and there was something in it"] if Seal(path).was_set() else []
    query = f"?mode=ro{f'&vfs={vfs}' if vfs else ''}"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}{query}", uri=True)) as conn:
            conn.text_factory = text_or_garbled
            return list(islice(_faults(conn), MOST))
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if not is_damage(error):
            raise
        return [str(error)]


class FileReport(Struct, frozen=True):
    """What a state file holds, or what is wrong with it."""

    faults: list[str]
    sessions: int = 0
    messages: int = 0
    schema: int = 0


def report_of(path: Path) -> FileReport:
    """A look through the file at `path`; all counts are 0 in one that was just begun."""
    try:
        faults = faults_of(path)
        if faults or path.stat().st_size == 0:
            return FileReport(faults)
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as conn:
            counts = conn.execute("SELECT count(*), (SELECT count(*) FROM messages) FROM sessions").fetchone()
            return FileReport(
                [], counts[0], counts[1], conn.execute("SELECT version FROM schema_version").fetchone()[0]
            )
    except (sqlite3.Error, TypeError) as error:  # the latter of a table without its row
        return FileReport([str(error)])


def is_true_text(digest: Any, text: Any) -> bool:
    """Whether a text is the one that its digest names."""
    return bool(sha256(text if isinstance(text, bytes) else str(text).encode()) == digest)


def _faults(conn: sqlite3.Connection) -> Iterator[str]:
    version = conn.execute("PRAGMA user_version").fetchone()[0]
    is_foreign = version == 0
    if not is_foreign:
        told = conn.execute("SELECT max(version) FROM schema_version").fetchone()[0]
        if told == version > schema.SCHEMA_VERSION:
            return  # a newer Hermes wrote it, and only that can judge it
        if told != version:
            yield f"its header names schema {version}, its table {told}"
    for (word,) in conn.execute(f"PRAGMA integrity_check({MOST})"):
        if word != "ok":
            yield str(word)
    if not is_foreign:
        yield from _index_faults(conn)
    for table in schema.TABLES:
        present = [str(row[1]) for row in conn.execute(f"PRAGMA table_info({table})")]
        missing = [] if is_foreign else [name for name in columns_of(table, version) if name not in present]
        if missing:
            yield f"table {table} has no column {missing[0]}"
        elif present:
            columns = [name for name in schema.TABLES[table] if name in present]
            yield from _row_faults(conn, table, columns, is_foreign=is_foreign)


def _row_faults(conn: sqlite3.Connection, table: str, columns: list[str], *, is_foreign: bool) -> Iterator[str]:
    for row_id, *values in conn.execute(f"SELECT rowid, {', '.join(columns)} FROM {table} NOT INDEXED"):
        bad = flaws(table, columns, values)
        if is_foreign:  # whose columns may hold what ours do not
            bad = [name for name, value in zip(columns, values, strict=True) if isinstance(value, Garbled)]
        if not bad and table == "texts" and not is_true_text(*values):
            bad = ["text"]
        if bad:
            yield f"row {row_id} of {table}: {', '.join(bad)} cannot be read"


def _index_faults(conn: sqlite3.Connection) -> Iterator[str]:
    """The index is made anew when in doubt; but its table must be the one that can be."""
    row = conn.execute("SELECT sql FROM sqlite_master WHERE name = 'messages_fts'").fetchone()
    if row is None or row[0] != tables.SEARCH_INDEX.replace("IF NOT EXISTS ", ""):
        yield "the table of the search index is not the one that was made"
