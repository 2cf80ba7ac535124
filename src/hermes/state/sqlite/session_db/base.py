"""What all parts of `SessionDB` stand on: one store, and rows as dicts."""

# ruff: noqa: S608 - names in statements come from the schema, never from outside

import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from hermes.state.codec import read_text
from hermes.state.schema import SESSION_COLUMNS
from hermes.state.sqlite.read import full_text
from hermes.state.sqlite.store import SqliteStore

Answer = TypeVar("Answer")
Row = dict[str, Any]

SESSION_FIELDS = ", ".join(f"s.{name}" for name in SESSION_COLUMNS)
_LONG_TEXTS = ("system_prompt", "tool_definitions")


class DbBase:
    """The store and the small calls that the parts share."""

    def __init__(self, db_path: Path | str | None = None, *, store: SqliteStore | None = None) -> None:
        self._owns_store = store is None
        self.store = store or SqliteStore(db_path if db_path is not None else default_path())
        self.db_path = self.store.path
        self._clock: Callable[[], float] = time.time

    def close(self) -> None:
        """Finish the writes and let the file go; a store that was handed in stays open."""
        if self._owns_store:
            self.store.close_sync()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, work: Callable[[sqlite3.Connection], Answer]) -> Answer:
        return self.store.write(work)

    def _execute(self, sql: str, values: Sequence[Any] = ()) -> int:
        """One statement in its own transaction; the number of rows it changed."""
        return self.store.write(lambda conn: conn.execute(sql, tuple(values)).rowcount)

    def _one(self, sql: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None = self.store.read(lambda conn: conn.execute(sql, tuple(values)).fetchone())
        return row

    def _all(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self.store.read(lambda conn: conn.execute(sql, tuple(values)).fetchall())

    def _sessions(self, where: str, values: Sequence[Any] = ()) -> list[Row]:
        """Whole session rows; `where` is everything after the table's name."""
        return self.store.read(lambda conn: session_rows(conn, where, values))


def session_rows(conn: sqlite3.Connection, where: str, values: Sequence[Any] = ()) -> list[Row]:
    """Session rows as dicts, their long texts filled in."""
    found = conn.execute(f"SELECT {SESSION_FIELDS} FROM sessions s {where}", tuple(values)).fetchall()
    rows = [dict(zip(SESSION_COLUMNS, (_plain(value) for value in row), strict=True)) for row in found]
    for row in rows:
        for name in _LONG_TEXTS:
            row[name] = full_text(conn, row[name])
    return rows


def placeholders(values: Iterable[Any]) -> str:
    """`?,?,?`, one for each value."""
    return ",".join("?" for _ in values)


def default_path() -> Path:
    """`state.db` in the home that is in use."""
    from hermes.config.paths import hermes_home  # noqa: PLC0415 - only needed when no path is given

    return hermes_home() / "state.db"


def _plain(value: Any) -> Any:
    return read_text(value) if isinstance(value, bytes) else value
