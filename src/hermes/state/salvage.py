"""What to do with a file that is damaged: keep it aside, and carry all that is readable into a new one."""

# ruff: noqa: S608 - names in statements come from the schema, never from outside

import logging
import shutil
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, get_args

from msgspec import Struct

from hermes.state import schema
from hermes.state.examine import is_true_text
from hermes.state.page_reader import Image, PageRow
from hermes.state.row_shapes import flaws, is_required
from hermes.state.salvaged_rows import SalvagedRows, TablePage
from hermes.types import Role

_log = logging.getLogger(__name__)

DAMAGED_MESSAGE = "[This message was damaged in the session file: what it said is lost.]"
LOST_SESSION = "recovered"  # where messages go whose session cannot be told
MAX_ROW_ID = 1 << 53
_TOLD = ("role", "content", "tool_calls", "tool_call_id")
_SIDES = ("-wal", "-shm", "-journal")


class Salvaged(Struct, frozen=True):
    """What came of a damaged file."""

    aside: Path
    sessions: int
    messages: int
    damaged: int  # messages that say in their place that they are lost
    is_all: bool  # every row could be read
    was_empty: bool = False  # there was no byte left

    @property
    def is_nothing(self) -> bool:
        """Whether neither file nor log had anything in them; then there is none to be kept."""
        return self.was_empty and not self.messages

    def sentence(self) -> str:
        """For the person whose file it is."""
        if self.is_nothing:
            return "the session file was there and is empty now: what was in it is lost, and a new one was begun"
        how_much = "everything" if self.is_all else "what could be read"
        lost = f"; {self.damaged} messages are damaged and say so in their place" if self.damaged else ""
        return (
            f"the session file was damaged; it is kept at {str(self.aside)!r}, and {how_much} "
            f"({self.sessions} sessions, {self.messages} messages) was carried over into a new one{lost}"
        )


def salvage(path: Path) -> Salvaged:
    """Replace the damaged file at `path`. The caller holds the lock between processes and no connection.

    The name is never without a file: one that cannot be written, for want of space, leaves the old one where it is.
    """
    new_path = path.with_name(f"{path.name}.salvage")
    _remove(new_path)  # of one who was killed here
    new_path.touch(mode=0o600)
    try:
        with closing(sqlite3.connect(new_path, isolation_level=None)) as new, Image(path) as image:
            new.execute("PRAGMA auto_vacuum = INCREMENTAL")
            new.execute("BEGIN IMMEDIATE")
            schema.create(new)
            copy = _Copy(new)
            rows = SalvagedRows(image)
            for page in rows.pages():
                copy.add(page)
            copy.finish()
            sessions = new.execute("SELECT count(*) FROM sessions").fetchone()[0]
            messages = new.execute("SELECT count(*) FROM messages").fetchone()[0]
            new.execute("COMMIT")
        was_empty = path.stat().st_size == 0
        aside = _swap(path, new_path)
    except BaseException:
        _remove(new_path)
        raise
    is_all = rows.is_complete and not copy.has_flaws
    salvaged = Salvaged(aside, sessions, messages, copy.damaged, is_all, was_empty)
    if salvaged.is_nothing:
        aside.unlink()  # but not the log beside it, of which somebody else may make more
    return salvaged


def _swap(path: Path, new: Path) -> Path:
    """Give the name to the new file; where the old one is now."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    aside = path.with_name(f"{path.name}.damaged-{stamp}")
    number = 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}.damaged-{stamp}-{number}")
    for side in ("", *_SIDES):
        with suppress(FileNotFoundError):
            _also_named(path.with_name(path.name + side), aside.with_name(aside.name + side))
    for side in _SIDES:  # a log beside the new file would be taken for its own
        path.with_name(path.name + side).unlink(missing_ok=True)
    new.replace(path)
    return aside


def _remove(path: Path) -> None:
    for side in ("", *_SIDES):
        path.with_name(path.name + side).unlink(missing_ok=True)


def _also_named(path: Path, name: Path) -> None:
    try:
        name.hardlink_to(path)
    except FileNotFoundError:
        raise
    except OSError:  # a file system without links
        shutil.copy2(path, name)


class _Copy:
    """Puts rows into the new file: whole ones as they come, then those with flaws, mended."""

    def __init__(self, new: sqlite3.Connection) -> None:
        self._new = new
        self._flawed: list[tuple[str, dict[str, Any]]] = []
        self.has_flaws = False
        self.damaged = 0

    def add(self, page: TablePage) -> None:
        """Take over what is whole; keep the rest for `finish`."""
        if page.table == "schema_version":
            return
        for number, row in enumerate(page.rows):
            values = _known(page, row)
            bad = flaws(page.table, list(values), list(values.values()))
            is_sound = row.is_whole and not bad and _is_true(page.table, values)
            if page.is_free and not (is_sound and self._is_of_a_session(page.table, values)):
                continue  # it was deleted
            if is_sound:
                _insert(self._new, page.table, values)
                continue
            self.has_flaws = True
            told = {name: value for name, value in values.items() if name not in bad}
            mended = _mended_message(told, page, number) if page.table == "messages" else _mended(page.table, told)
            if mended is not None:
                self._flawed.append((page.table, mended))

    def _is_of_a_session(self, table: str, values: dict[str, Any]) -> bool:
        found = self._new.execute("SELECT 1 FROM sessions WHERE id = ?", (values.get("session_id"),))
        return table == "messages" and found.fetchone() is not None

    def finish(self) -> None:
        """Add what was mended, and make the whole consistent."""
        for table, row in self._flawed:
            added = _insert(self._new, table, row)
            self.damaged += added and row.get("content") == DAMAGED_MESSAGE
        _adopt_orphans(self._new)
        self._new.execute("DELETE FROM state_meta WHERE key IN ('fts_watermark', 'fts_format')")


def _known(page: TablePage, row: PageRow) -> dict[str, Any]:
    """The columns of a row that our table has too; its number stands beside it, where there is a column for that."""
    ours = schema.TABLES[page.table]
    values = {name: value for name, value in zip(page.columns, row.values, strict=False) if name in ours}
    for name, value in values.items():
        if value is None and ours[name].startswith("INTEGER PRIMARY KEY"):
            values[name] = row.row_id if 0 < row.row_id < MAX_ROW_ID else None
    return values


def _is_true(table: str, values: dict[str, Any]) -> bool:
    return table != "texts" or is_true_text(values.get("digest"), values.get("text"))


def _mended(table: str, told: dict[str, Any]) -> dict[str, Any] | None:
    """A row without its flaws; None when nothing is left that could be used."""
    if table == "sessions":
        told.setdefault("started_at", 0.0)
    if table == "texts" or any(is_required(table, name) and name not in told for name in schema.TABLES[table]):
        return None
    return told


def _mended_message(told: dict[str, Any], page: TablePage, number: int) -> dict[str, Any] | None:
    """A message without its flaws, and a sentence where it was."""
    around = [*reversed(page.rows[:number]), *page.rows[number + 1 :]]
    sound = [row.values for row in around if row.is_whole and not flaws(page.table, page.columns, row.values)]
    near = dict(zip(page.columns, sound[0], strict=False)) if sound else {}
    # What it said stays as it is wherever that can be read, also without its calls.
    is_silent = told.get("content") is None and any(name not in told for name in _TOLD if name in page.columns)
    if is_silent or not (page.rows[number].is_whole or told.get("role") in get_args(Role)):
        told["content"] = DAMAGED_MESSAGE
        told.setdefault("session_id", near.get("session_id", LOST_SESSION))
    told.setdefault("session_id", LOST_SESSION)
    told.setdefault("role", "tool" if told.get("tool_call_id") else "user")
    told.setdefault("timestamp", near.get("timestamp", 0.0))
    return told


def _insert(new: sqlite3.Connection, table: str, row: dict[str, Any]) -> bool:
    sql = f"INSERT OR IGNORE INTO {table}({', '.join(row)}) VALUES ({','.join('?' * len(row))})"
    try:
        if new.execute(sql, tuple(row.values())).rowcount:
            return True
    except sqlite3.IntegrityError as error:
        _log.info("a salvaged row is not usable: %s", error)
        return False
    if table == "sessions" and row.get("title") is not None:
        # Another has the title; the session itself must not be lost for that.
        return bool(new.execute(sql, tuple((row | {"title": None}).values())).rowcount)
    return False


def _adopt_orphans(new: sqlite3.Connection) -> None:
    """Give messages whose session row is lost a session again."""
    new.execute(
        "INSERT INTO sessions(id, source, started_at) SELECT session_id, 'recovered', min(timestamp) FROM messages"
        " WHERE session_id NOT IN (SELECT id FROM sessions) GROUP BY session_id"
    )
    new.execute(
        "UPDATE sessions SET started_at = coalesce((SELECT min(timestamp) FROM messages m"
        " WHERE m.session_id = sessions.id), 0) WHERE started_at = 0"
    )
    new.execute(
        "UPDATE sessions SET message_count = (SELECT count(*) FROM messages m WHERE m.session_id = sessions.id"
        " AND m.active = 1)"
    )
