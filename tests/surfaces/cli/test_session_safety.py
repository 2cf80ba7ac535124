"""What a careless hand does to sessions: deleting one that is at work, losing the file beside its log."""

import shutil
from pathlib import Path

import pytest

from hermes.errors import SessionInUse
from hermes.ops import LeaseTaken, MessageAppended, SessionCreated
from hermes.state import SessionDB, SqliteStore
from hermes.types import Message
from tests.surfaces.cli.conftest import Run


def test_a_session_that_is_at_work_is_not_deleted(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    store.commit_sync(SessionCreated(session_id="s"))
    store.commit_sync(LeaseTaken(session_id="s", fence=7, message_count=0))
    with SessionDB(tmp_path / "state.db") as db:
        with pytest.raises(SessionInUse):
            db.delete_session("s")
        assert db.delete_sessions(["s"]) == 0
        assert db.get_session("s") is not None
    store.close_sync()


def test_sessions_whose_file_is_gone_and_whose_log_is_there_come_back(home: Path, run: Run) -> None:
    store = SqliteStore(home / "state.db")
    store.commit_sync(SessionCreated(session_id="s"), MessageAppended("s", Message(role="user", content="kept")))
    shutil.copy(home / "state.db-wal", home / "log")
    store.close_sync()
    for file in home.glob("state.db*"):
        if file.is_file():
            file.unlink()
    (home / "log").rename(home / "state.db-wal")

    looked = run("sessions", "repair", "--check-only")
    assert (looked.returncode, "its log is there" in looked.stderr) == (1, True)
    mended = run("sessions", "repair")
    assert "made again from its log" in mended.stderr
    assert "kept" in run("sessions", "show", "s").stdout
