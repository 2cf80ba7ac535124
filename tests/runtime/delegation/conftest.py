"""A store in a file, as agents use it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.state import SqliteStore


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    made = SqliteStore(tmp_path / "state.db")
    yield made
    await made.close()
