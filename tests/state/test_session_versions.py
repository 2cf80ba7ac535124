"""A version tells every write about its session, whoever makes it, and none about others."""

from pathlib import Path

import pytest

from hermes.ops import MessageAppended, SessionChanged, SessionCreated
from hermes.state import SqliteStore, session_versions
from hermes.types import Message


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with_two = SqliteStore(tmp_path / "state.db")
    with_two.commit_sync(SessionCreated(session_id="a"), SessionCreated(session_id="b"))
    with_two.close_sync()
    return tmp_path / "state.db"


def _said(session_id: str) -> MessageAppended:
    return MessageAppended(session_id, Message(role="user", content="hi"))


def test_own_commits_lead_to_the_version_that_was_foreseen(file: Path) -> None:
    store = SqliteStore(file)
    before = store.version("a")
    assert before is not None
    assert store.version("a") == before
    store.commit_sync(_said("b"))
    assert store.version("a") == before
    store.commit_sync(_said("a"), SessionChanged("a", {"title": "t"}))
    store.commit_sync(_said("a"))
    assert store.version("a") == before.after(2)
    store.close_sync()


def test_writes_of_others_are_told(file: Path) -> None:
    store, other = SqliteStore(file), SqliteStore(file)
    before = store.version("a")
    other.commit_sync(_said("b"))  # over another connection nobody can tell about whom it is
    assert store.version("a") != before
    before = store.version("a")
    store.write(lambda conn: conn.execute("UPDATE sessions SET title = 'x' WHERE id = 'a'"))
    assert store.version("a") != before
    store.close_sync()
    other.close_sync()


def test_few_sessions_are_watched_and_none_comes_back_to_an_old_version(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_versions, "MAX_WATCHED", 3)
    store = SqliteStore(file)
    first = store.version("a")
    for number in range(10):
        store.version(f"other {number}")
    assert len(store._versions._counts) <= 3
    assert store.version("a") != first
    store.close_sync()


def test_another_file_in_the_same_place_is_another_version(file: Path) -> None:
    store = SqliteStore(file)
    store.commit_sync(_said("a"))
    before = store.version("a")
    assert before is not None
    for end in ("", "-wal", "-shm"):  # as a repair by another process does it, under the same lock
        file.with_name(file.name + end).rename(file.with_name("old" + end))
    other = SqliteStore(file)
    other.commit_sync(SessionCreated(session_id="a"), _said("a"))
    other.close_sync()
    store.commit_sync(_said("a"))
    assert store.version("a") != before.after(1)
    store.close_sync()
