"""The written history of row shapes: whether it is true, and what salvage makes of it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hermes.state import SessionDB, schema
from hermes.state.codec import sha256
from hermes.state.sqlite import tables
from hermes.state.sqlite.schema_history import HISTORY, columns_of, shapes_of
from hermes.state.sqlite.tables import migrate
from tests.state.opened import sqlite_of

PAGE = 4096


def test_the_history_ends_with_the_schema_as_it_is() -> None:
    """Fails for a table or column that is new in `schema`: add it as an entry at the end of `HISTORY`."""
    assert len(HISTORY) == schema.SCHEMA_VERSION
    assert {table: columns_of(table) for added in HISTORY for table in added} == {
        table: tuple(columns) for table, columns in schema.TABLES.items()
    }


def test_rows_of_a_new_file_hold_their_columns_in_the_order_of_the_history(tmp_path: Path) -> None:
    SessionDB(tmp_path / "state.db").close()
    with closing(sqlite3.connect(tmp_path / "state.db")) as conn:
        for table in schema.TABLES:
            stored = tuple(row[1] for row in conn.execute(f"PRAGMA table_info({table})"))
            assert stored == columns_of(table), table


def as_of(version: int, path: Path) -> None:
    """A file as Hermes with schema `version` made it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as conn:
        conn.execute("PRAGMA auto_vacuum = INCREMENTAL")
        for table, kinds in schema.TABLES.items():
            columns = columns_of(table, version)
            if columns:
                conn.execute(f"CREATE TABLE {table} ({', '.join(f'{name} {kinds[name]}' for name in columns)})")
        made = [table for table in schema.TABLES if columns_of(table, version)]
        for statement in tables.INDEXES:
            if any(f" ON {table}(" in statement for table in made):
                conn.execute(statement)
        conn.execute(tables.SEARCH_INDEX)
        conn.execute(f"PRAGMA user_version = {version}")


@pytest.mark.parametrize("version", range(1, len(HISTORY) + 1))
def test_rows_of_every_schema_are_told_without_header_and_schema(tmp_path: Path, version: int) -> None:
    """Rows that an older schema wrote stay as narrow as they were, beside those of the present one."""
    path = tmp_path / "state.db"
    as_of(version, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as conn:
        for number in range(3):
            fill(conn, number, version)
        if version < schema.SCHEMA_VERSION:
            migrate(conn, path)
        fill(conn, 3, len(HISTORY))
        before = contents(conn)
    with open(path, "r+b") as file:
        file.write(b"\0" * PAGE)
    with SessionDB(path) as db:
        assert sqlite_of(db).salvaged is not None
        assert sqlite_of(db).read(contents) == before


def fill(conn: sqlite3.Connection, number: int, version: int) -> None:
    """One row in every table that the version has, every column given."""
    for table, kinds in schema.TABLES.items():
        columns = columns_of(table, version)
        if table in ("schema_version", "state_meta") or not columns:
            continue
        values = [value_for(name, kinds[name], number) for name in columns]
        if table == "texts":
            values = [sha256(b"text %d" % number), f"text {number}"]
        conn.execute(f"INSERT INTO {table}({', '.join(columns)}) VALUES ({','.join('?' * len(values))})", values)


def value_for(name: str, kind: str, number: int) -> object:
    if name == "digest":
        return f"{number:064x}"
    if name == "role":
        return "user"
    if "CHECK" in kind:
        return kind.split("'")[1]
    if name == "session_id":
        return f"id {number}"
    if kind.startswith("INTEGER"):
        return 1 if name == "active" else number + 1
    return float(number + 1) if kind.startswith("REAL") else f"{name} {number}"


def contents(conn: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    found = {}
    for table in schema.TABLES:
        if table not in ("schema_version", "state_meta"):
            columns = ", ".join(name for name in columns_of(table) if name not in ("message_count", "tool_call_count"))
            found[table] = conn.execute(f"SELECT {columns} FROM {table} ORDER BY 1, 2").fetchall()
    return found


def test_every_table_has_at_least_one_shape() -> None:
    assert all(shapes_of(table) for table in schema.TABLES)
    assert shapes_of("attempts") == {20, 22}
