"""A write-ahead log that somebody takes away is noticed: what SQLite writes into it would never be read again."""

from pathlib import Path

import pytest

from hermes.errors import StoreError
from hermes.ops import MessageAppended, SessionCreated
from hermes.state import SqliteStore
from hermes.types import Message


def test_a_log_that_is_removed_is_told_by_the_next_commit(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    store.commit_sync(SessionCreated(session_id="s"))
    store.commit_sync(MessageAppended("s", Message(role="user", content="one")))
    (tmp_path / "state.db-wal").unlink()
    with pytest.raises(StoreError, match="was removed while it was in use"):
        store.commit_sync(MessageAppended("s", Message(role="user", content="two")))
    store.close_sync()
