"""What to do with a file that is damaged: keep it aside, and carry all that is readable into a new one.

Which table a row is of is told by the schema and the trees of the file as far as they are whole, else by its shape.
"""

# ruff: noqa: S608 - names in statements come from the schema, never from outside
import logging
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, get_args

from msgspec import Struct

from hermes.state import schema
from hermes.state.sqlite import tables
from hermes.state.sqlite.examine import is_true_text
from hermes.state.sqlite.message_line import adopt_old_lines
from hermes.state.sqlite.page_reader import INTERIOR, LEAF, Image, PageRow
from hermes.state.sqlite.row_shapes import flaws, is_required, table_of
from hermes.state.sqlite.schema_history import columns_of
from hermes.types import Role

_log = logging.getLogger(__name__)

DAMAGED_MESSAGE = "[This message was damaged in the session file: what it said is lost.]"
LOST_SESSION = "recovered"  # where messages go whose session cannot be told
MAX_ROW_ID = 1 << 53
_TOLD = ("role", "content", "tool_calls", "tool_call_id")
_KINDS = ("table", "index", "view", "trigger")
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
            tables.create(new)
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


class TablePage(Struct, gc=False):
    """The rows of one leaf, with the names of their columns in order."""

    table: str
    columns: tuple[str, ...]
    rows: list[PageRow]
    is_free: bool = False  # by the file's own list; its rows may have been deleted


class SalvagedRows:
    """What a damaged file still holds. `is_complete` is known when all of `pages` were taken."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._columns: dict[str, tuple[str, ...]] = {}
        self._owner: dict[int, str] = {}  # of leaves that a tree leads to
        self.is_complete = True

    def pages(self) -> Iterator[TablePage]:
        """Every leaf with rows of our tables, those that a tree leads to first: an older row of the same id loses.

        Free ones come last, and only when rows are missing elsewhere: a page may have taken the place of another.
        """
        image = self._image
        leaves = [number for number in range(1, image.count + 1) if image.kind(number) == LEAF]
        self._read_schema(leaves)
        free = image.free_pages() - self._owner.keys()
        for number in sorted(leaves, key=lambda number: number not in self._owner):
            if number not in free:
                yield from self._page(number)
        if not self.is_complete:
            for number in sorted(free.intersection(leaves)):
                for page in self._page(number):
                    page.is_free = True
                    yield page
        self.is_complete &= not image.lost_cells and {"sessions", "messages"} <= self._columns.keys()

    def _page(self, number: int) -> Iterator[TablePage]:
        rows = self._image.rows(number)
        owner = self._owner.get(number, "")
        columns = self._columns.get(owner)
        # By their shape first: a page may have taken the place of another. Only a foreign file has shapes of its own.
        table = table_of([row.values for row in rows], likely=owner)
        if columns is not None and (table in (None, owner) or columns != columns_of(owner)[: len(columns)]):
            yield TablePage(owner, columns, rows)
        elif table is not None:
            self.is_complete = False  # a tree that should lead here does not
            yield TablePage(table, columns_of(table), rows)

    def _read_schema(self, leaves: list[int]) -> None:
        for number in leaves:
            rows = self._image.rows(number)
            if rows and all(_is_schema_row(row) for row in rows):
                for row in rows:
                    _, name, _, root, sql = row.values
                    if row.values[0] == "table" and isinstance(root, int) and root > 0:
                        self._follow(str(name), root, str(sql))

    def _follow(self, name: str, root: int, sql: str) -> None:
        """Note which leaves the tree at `root` leads to."""
        if name in schema.TABLES:
            columns = _columns_in(name, sql)
            if columns is None:
                self.is_complete = False
                return
            self._columns[name] = columns
        image, waiting, seen = self._image, [root], set[int]()
        while waiting:
            number = waiting.pop()
            if number in seen:
                continue
            seen.add(number)
            kind = image.kind(number)
            if kind == LEAF:
                self._owner.setdefault(number, name)
            elif kind == INTERIOR:
                waiting += image.children(number)
            elif name in schema.TABLES:
                self.is_complete = False


def _is_schema_row(row: PageRow) -> bool:
    return len(row.values) == 5 and row.values[0] in _KINDS and isinstance(row.values[3], int)


def _columns_in(table: str, sql: str) -> tuple[str, ...] | None:
    """The columns of a table by the statement that made it; None when the statement is damaged."""
    with closing(sqlite3.connect(":memory:")) as scratch:
        try:
            scratch.execute(sql)
            found = tuple(str(row[1]) for row in scratch.execute(f"PRAGMA table_info({table})"))
        except sqlite3.Error:
            return None
    ours = columns_of(table)[: len(found)]
    alike = sum(name == our for name, our in zip(found, ours, strict=False))
    return ours if alike >= len(found) - 2 else found  # a damaged name or two


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
        adopt_old_lines(self._new)
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
