"""The rows of our tables in a damaged file: by its schema and trees as far as they are whole, else by their shape."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

from msgspec import Struct

from hermes.state import schema
from hermes.state.page_reader import INTERIOR, LEAF, Image, PageRow
from hermes.state.row_shapes import table_of
from hermes.state.schema_history import columns_of

_KINDS = ("table", "index", "view", "trigger")


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
