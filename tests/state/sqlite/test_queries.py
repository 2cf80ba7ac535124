"""What the named queries do beside their contract where there is a file: space, blobs, the index behind a search."""

from pathlib import Path

import pytest

from hermes.state import SessionDB
from tests.state.opened import sqlite_of
from tests.state.test_session_db import talk


def test_deleting_takes_the_blobs_of_a_session_with_it(db: SessionDB) -> None:
    sqlite_of(db).blobs.grace_s = -1.0
    talk(db, "a", "findme " * 10_000, "and findmetoo")
    sqlite_of(db).index_all()
    assert len(list(sqlite_of(db).blobs.files())) == 1
    assert db.delete_session("a")
    assert db.search_messages("findmetoo") == []
    assert list(sqlite_of(db).blobs.files()) == []


def test_prune_spares_open_and_young_sessions_and_returns_the_space(db: SessionDB) -> None:
    for number in range(40):
        talk(db, f"s{number}", *[f"word{number} {n} " + "filler text " * 60 for n in range(40)])
        if number < 30:
            db.end_session(f"s{number}", "user_exit")
    sqlite_of(db).index_all()
    db.vacuum()
    before = db.db_path.stat().st_size
    db.clock = lambda: 4e9
    db.reopen_session("s0")
    assert [row["id"] for row in db.list_prune_candidates(90)][:1] == ["s1"]
    assert db.prune_sessions(90) == 29
    assert db.session_count() == 11
    assert db.search_messages("word5") == []
    assert len(db.search_messages("word0", limit=100)) == 40
    assert db.db_path.stat().st_size < before * 0.6
    db.vacuum()
    assert db.db_path.stat().st_size < before * 0.4


def test_search_can_be_kept_to_one_user(db: SessionDB) -> None:
    talk(db, "a", "needle", user_id="ann")
    talk(db, "b", "needle", user_id="bob")
    for _ in range(2):
        assert [row["session_id"] for row in db.search_messages("needle", user_id="ann")] == ["a"]
        assert [row["id"] for row in db.list_sessions_rich(user_id="bob")] == ["b"]
        sqlite_of(db).index_all()


def test_stats_say_how_much_there_is(db: SessionDB) -> None:
    talk(db, "s", "x" * 50_000)
    stats = db.storage_stats()
    assert (stats["sessions"], stats["messages"], stats["blob_bytes"]) == (1, 1, 50_000)
    assert stats["file_bytes"] > 0


def test_the_default_file_is_in_the_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "home"))
    with SessionDB() as db:
        assert db.db_path == tmp_path / "home" / "state.db"
    assert (tmp_path / "home" / "state.db").stat().st_mode & 0o077 == 0


def test_a_name_that_is_no_text_is_told_instead_of_looked_for(db: SessionDB) -> None:
    with pytest.raises(UnicodeEncodeError):
        db.resolve_session_id("x\udcff")
