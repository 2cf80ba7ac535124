"""A full disk and a read-only one, at every write: the turn fails visibly, the file stays sound, work goes on."""

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from hermes.errors import StoreError, StoreUnavailable
from hermes.ops import AttemptClosed, AttemptOpened, CallClosed, CallJournalled, MessageAppended, SessionCreated
from hermes.state import SessionDB, SqliteStore
from hermes.types import ImagePart, Message, ToolCall, Usage


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of three megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"needs the right to mount a small tmpfs: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def turn(store: SqliteStore, number: int, size: int) -> None:
    """The commits of one turn with one call."""
    call = ToolCall(f"c{number}", "read", "{}")
    attempt = f"a{number}"
    store.commit_sync(
        MessageAppended("s", Message(role="user", content="u" * size)),
        AttemptOpened(attempt_id=attempt, session_id="s", purpose="turn", provider="p", model="m"),
    )
    store.commit_sync(
        MessageAppended("s", Message(role="assistant", content="a" * size, tool_calls=(call,))),
        AttemptClosed(attempt_id=attempt, session_id="s", outcome="ok", usage=Usage(1, 1)),
        CallJournalled("s", call),
    )
    store.commit_sync(
        CallClosed("s", call.id, "ok"),
        MessageAppended("s", Message(role="tool", content="t" * size, tool_call_id=call.id)),
    )


def sound(path: Path) -> None:
    with closing(sqlite3.connect(path)) as conn:
        assert conn.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


@pytest.mark.real
@pytest.mark.parametrize("free_bytes", [0, 4096, 20_000, 65_536, 150_000, 400_000])
def test_a_full_disk_fails_the_turn_and_loses_nothing(small_disk: Path, free_bytes: int) -> None:
    path = small_disk / "state.db"
    store = SqliteStore(path)
    store.commit_sync(SessionCreated(session_id="s"))
    turn(store, 0, 2000)
    ballast = small_disk / "ballast"
    room = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize
    ballast.write_bytes(b"x" * max(0, room - free_bytes))
    done = 1
    failures: list[str] = []
    for number in range(1, 300):
        try:
            turn(store, number, 2000)
            done += 1
        except StoreError as error:
            failures.append(str(error))
            if len(failures) == 5:
                break
    assert len(failures) == 5
    assert [one for one in failures if "full" not in one and "No space left" not in one] == []
    record = store.load_sync("s")
    assert record is not None
    before = record.messages
    assert len(before) >= 3 * done
    ballast.unlink()
    turn(store, 1000, 2000)
    record = store.load_sync("s")
    assert record is not None
    assert record.messages[: len(before)] == before
    assert len(record.messages) == len(before) + 3
    store.index_all()
    store.close_sync()
    sound(path)
    with SessionDB(path) as db:
        assert db.message_count("s") == len(before) + 3


@pytest.mark.real
def test_a_blob_that_does_not_fit_fails_its_commit(small_disk: Path) -> None:
    store = SqliteStore(small_disk / "state.db")
    store.commit_sync(SessionCreated(session_id="s"))
    image = ImagePart("data:image/png;base64," + "QUJD" * 1_200_000)
    with pytest.raises(StoreError, match="no space is left on the disk"):
        store.commit_sync(MessageAppended("s", Message(role="user", content=(image,))))
    assert list(store.blobs.files()) == []
    store.commit_sync(MessageAppended("s", Message(role="user", content="small")))
    record = store.load_sync("s")
    assert record is not None
    assert [message.content for message in record.messages] == ["small"]
    store.close_sync()
    sound(small_disk / "state.db")


@pytest.mark.real
def test_a_disk_that_turns_read_only_fails_visibly_and_heals(small_disk: Path) -> None:
    path = small_disk / "state.db"
    store = SqliteStore(path)
    store.commit_sync(SessionCreated(session_id="s"))
    turn(store, 0, 100)
    store.write_alone(lambda conn: conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())
    store.close_sync()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    try:
        with pytest.raises(StoreUnavailable, match="the file system is read-only"):
            SqliteStore(path)
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    store = SqliteStore(path)
    turn(store, 1, 100)
    store.close_sync()
    sound(path)


def test_a_write_that_sqlite_calls_read_only_is_an_error_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = SqliteStore(path)
    store.commit_sync(SessionCreated(session_id="s"))
    store.write_alone(lambda conn: conn.execute("PRAGMA query_only = ON"))
    with pytest.raises(StoreError, match="readonly"):
        turn(store, 0, 10)
    store.write_alone(lambda conn: conn.execute("PRAGMA query_only = OFF"))
    turn(store, 0, 10)
    record = store.load_sync("s")
    assert record is not None
    assert len(record.messages) == 3
    store.close_sync()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable, match="cannot make the folder"):
        SqliteStore(tmp_path / "file" / "state.db")
    with pytest.raises(StoreUnavailable, match="'power' or 'process'"):
        SqliteStore(tmp_path / "x.db", durability="never")  # type: ignore[arg-type]  # what a config file may hold


async def test_a_file_that_is_taken_away_is_told_and_goes_on_when_it_is_back(tmp_path: Path) -> None:
    path, away = tmp_path / "state.db", tmp_path / "away.db"
    store = SqliteStore(path)
    said = MessageAppended("s", Message(role="user", content="hello"))
    await store.commit(SessionCreated(session_id="s"), said)
    path.rename(away)
    with pytest.raises(StoreError, match="was removed while it was in use; put it back"):
        await store.commit(said)
    with pytest.raises(StoreError, match="was removed while it was in use; put it back"):
        store.commit_sync(said)
    away.rename(path)
    await store.commit(said)
    record = await store.load("s")
    assert record is not None
    assert len(record.messages) == 2
    await store.close()
    sound(path)


def test_durability_sets_how_a_commit_is_synced(tmp_path: Path) -> None:
    for durability, level in (("power", 2), ("process", 1)):
        store = SqliteStore(tmp_path / f"{durability}.db", durability=durability)  # type: ignore[arg-type]  # a loop
        assert store.write_alone(lambda conn: conn.execute("PRAGMA synchronous").fetchone()[0]) == level
        store.close_sync()


async def test_the_log_stays_short_while_a_loop_writes_without_pause(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    await store.commit(SessionCreated(session_id="s"))
    longest = 0
    for number in range(800):
        await store.commit(MessageAppended("s", Message(role="user", content=f"m{number}")))
        longest = max(longest, (tmp_path / "state.db-wal").stat().st_size)
    await store.close()
    assert longest < 200 * 5 * 4096, "five pages a commit: this would be more than two hundred of them"


@pytest.mark.real
def test_a_full_disk_leaves_a_damaged_file_where_it_is(small_disk: Path) -> None:
    path = small_disk / "state.db"
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        for _ in range(30):
            db.append_message("s", "user", "words " * 1500)
    with open(path, "r+b") as file:
        file.write(b"\0" * 4096)
    damaged = path.read_bytes()
    ballast = small_disk / "ballast"
    with suppress(OSError), open(ballast, "wb", buffering=0) as filling:
        while True:
            filling.write(b"x" * 4096)
    with pytest.raises(StoreUnavailable, match="full"):
        SqliteStore(path)
    assert path.read_bytes() == damaged
    assert sorted(file.name for file in small_disk.iterdir()) == ["ballast", "state.db", "state.db-lock"]
    ballast.unlink()
    with SessionDB(path) as db:
        assert db.message_count() == 30
