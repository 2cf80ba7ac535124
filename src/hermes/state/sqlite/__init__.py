"""The store in one SQLite file: all that knows sqlite3, its files and its SQL is in this folder."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes.state.sqlite.store import SqliteStore
    from hermes.state.stores import Durability


def open_store(place: Path | str, durability: "Durability") -> "SqliteStore":
    """The store in the file at `place`."""
    from hermes.state.sqlite.store import SqliteStore  # one part of this folder needs no other

    return SqliteStore(place, durability=durability)
