"""Stores for the contract suite: every implementation of `EventStore` passes the same tests."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from hermes.seams import EventStore
from hermes.state import SessionDB, SqliteStore
from tests.state.memory_queries import MemorySessionStore

MakeStore = Callable[[Path], Awaitable[EventStore]]


async def _sqlite(folder: Path) -> EventStore:
    return SqliteStore(folder / "state.db")


async def _sqlite_rollback_journal(folder: Path) -> EventStore:
    store = SqliteStore(folder / "state.db", vfs="unix-dotfile")  # a VFS without shared memory cannot do WAL
    assert store.journal_mode == "delete"
    return store


async def _memory(_: Path) -> EventStore:
    return MemorySessionStore()


# Another implementation (PostgreSQL) joins the suite by adding one line here.
STORES: dict[str, MakeStore] = {"sqlite": _sqlite, "sqlite-no-wal": _sqlite_rollback_journal, "memory": _memory}


@pytest.fixture(params=sorted(STORES))
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EventStore]:
    made = await STORES[request.param](tmp_path)
    yield made
    await made.close()


@pytest.fixture
def db(tmp_path: Path) -> Iterator[SessionDB]:
    with SessionDB(tmp_path / "state.db") as opened:
        yield opened
