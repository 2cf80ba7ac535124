"""Many processes on one file: everything is stored, nobody fails, no lock outlives its owner."""

import errno
import json
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from hermes.errors import StoreUnavailable
from hermes.state import SessionDB, SqliteStore
from hermes.state.sqlite.connection import choose_journal, file_system_of
from hermes.state.sqlite.lock import FairLock, Seal

WORKER = Path(__file__).with_name("workers.py")
TURNS = 1000 if os.environ.get("HERMES_TEST_FULL") == "1" else 40
SOURCE = Path(__file__).parents[2] / "src"


def worker(job: str, db: Path, name: str, count: int) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, str(WORKER), job, str(db), name, str(count)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )


def test_sixteen_processes_store_every_turn(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    children = [worker("turns", path, f"s{number}", TURNS) for number in range(16)]
    answers = [child.communicate(timeout=400) for child in children]
    assert [child.returncode for child in children] == [0] * 16, [error for _, error in answers if error]
    assert sum(json.loads(out)["turns"] for out, _ in answers) == 16 * TURNS
    assert Seal(path).is_unbroken()  # else the next start would look through the file and index it anew
    with closing(sqlite3.connect(path)) as conn:
        assert conn.execute("SELECT count(*) FROM messages").fetchone()[0] == 32 * TURNS
        assert conn.execute("SELECT count(*) FROM attempts WHERE outcome = 'ok'").fetchone()[0] == 16 * TURNS
        assert (
            conn.execute("SELECT min(message_count), max(message_count) FROM sessions").fetchone() == (2 * TURNS,) * 2
        )
        assert conn.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


def test_the_lock_is_given_in_the_order_of_asking(tmp_path: Path) -> None:
    first = FairLock(tmp_path / "lock")
    first.open()
    first.acquire()
    order: list[int] = []

    def wait(number: int, asked: threading.Event) -> None:
        lock = FairLock(tmp_path / "lock")
        lock.open()
        asked.set()
        lock.acquire()
        order.append(number)
        lock.release()
        lock.close()

    threads = []
    for number in range(8):
        before = _waiting(tmp_path / "lock")
        asked = threading.Event()
        thread = threading.Thread(target=wait, args=(number, asked))
        thread.start()
        threads.append(thread)
        assert asked.wait(10)
        while _waiting(tmp_path / "lock") == before:
            os.sched_yield()
    first.release()
    for thread in threads:
        thread.join(10)
    first.close()
    assert order == list(range(8))


def _waiting(path: Path) -> int:
    """The last number that was given out."""
    return int.from_bytes(path.read_bytes()[:8], "little")


HOLD = """
import sys, time
from pathlib import Path
from hermes.state.sqlite.lock import FairLock
lock = FairLock(Path(sys.argv[1])); lock.open(); lock.acquire()
print("held", flush=True)
time.sleep(600)
"""


def test_the_lock_dies_with_its_owner(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "lock")],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"held\n"
    lock = FairLock(tmp_path / "lock")
    lock.open()
    got = threading.Event()

    def wait() -> None:
        lock.acquire()
        got.set()

    thread = threading.Thread(target=wait)
    thread.start()
    assert not got.wait(0.05)
    child.kill()
    assert got.wait(10)
    child.wait()
    child.stdout.close()
    thread.join()
    lock.release()
    lock.close()


def test_two_stores_in_one_process_share_a_file(tmp_path: Path) -> None:
    with SessionDB(tmp_path / "state.db") as one, SessionDB(tmp_path / "state.db") as two:
        one.create_session("s", "cli")
        for number in range(20):
            (one if number % 2 else two).append_message("s", "user", str(number))
        assert [row["content"] for row in one.get_messages("s")] == [str(number) for number in range(20)]


def test_a_stranger_that_holds_the_file_is_waited_for(tmp_path: Path) -> None:
    with SessionDB(tmp_path / "state.db") as db:
        db.create_session("s", "cli")
        stranger = sqlite3.connect(tmp_path / "state.db", isolation_level=None, check_same_thread=False)
        stranger.execute("BEGIN IMMEDIATE")
        thread = threading.Thread(target=db.append_message, args=("s", "user", "late"))
        thread.start()
        thread.join(0.05)
        assert thread.is_alive()
        stranger.execute("COMMIT")
        stranger.close()
        thread.join(30)
        assert db.message_count("s") == 1


def test_without_wal_another_journal_is_used_and_said(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db", vfs="unix-dotfile")
    assert store.journal_mode == "delete"
    assert "write-ahead logging does not work here" in store.notes[0]
    store.close_sync()


def test_a_network_file_system_gets_a_rollback_journal(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None)) as conn:
        mode, reason = choose_journal(conn, "nfs4")
    assert mode == "delete"
    assert reason is not None
    assert reason.startswith("nfs4 is a network file system")


def test_the_file_system_is_told_by_the_longest_mount(tmp_path: Path) -> None:
    inside = tmp_path / "a b"
    inside.mkdir()
    mounts = tmp_path / "mountinfo"
    lines = [
        "1 0 0:1 / / rw - ext4 /dev/a rw",
        f"2 1 0:2 / {str(inside).replace(' ', chr(92) + '040')} rw - nfs4 h:/x rw",
    ]
    mounts.write_text("\n".join(lines))
    assert file_system_of(inside, mounts) == "nfs4"
    assert file_system_of(tmp_path, mounts) == "ext4"
    assert file_system_of(tmp_path, tmp_path / "none") == ""


def test_a_file_system_without_locks_is_refused_with_the_reason(tmp_path: Path) -> None:
    def unsupported(_handle: int, _how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    def ignored(_handle: int, _how: int) -> None:
        """As on file systems that accept a lock and forget it."""

    with pytest.raises(StoreUnavailable, match=r"cannot lock files \(No locks available\); put HERMES_HOME on a local"):
        FairLock(tmp_path / "lock", unsupported).open()
    with pytest.raises(StoreUnavailable, match="do not exclude anyone; put HERMES_HOME on a local disk"):
        FairLock(tmp_path / "lock", ignored).open()
