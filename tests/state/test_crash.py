"""SIGKILL at random moments of writing and indexing: nothing acknowledged is lost, search agrees with a scan."""

import os
import random
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

from hermes.state import SessionDB
from hermes.state.sqlite.repair import repair
from tests.state.opened import sqlite_of

WORKER = Path(__file__).with_name("workers.py")
SOURCE = Path(__file__).parents[2] / "src"
KILLS = 500 if os.environ.get("HERMES_TEST_FULL") == "1" else 50
LIVES = 10  # kills on one file, before it is looked at and another begun


def test_no_acknowledged_row_is_lost_to_sigkill(tmp_path: Path) -> None:
    rng = random.Random(11)
    for era in range(KILLS // LIVES):
        path = tmp_path / f"{era}" / "state.db"
        acknowledged: dict[str, int] = {}
        for life in range(LIVES):
            acknowledged |= live_and_die(path, f"n{life}", rng.randint(5, 120))
        check(path, acknowledged)


def live_and_die(path: Path, name: str, after_acks: int) -> dict[str, int]:
    """Run a writer, kill it some acknowledgements later, at whatever it is doing then; what it had acknowledged."""
    child = subprocess.Popen(
        [sys.executable, str(WORKER), "mixed", str(path), name, "0"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )
    assert child.stdout is not None
    seen: dict[str, int] = {}
    timer = threading.Timer(60, child.kill)  # a writer that hangs fails the count below
    timer.start()
    for line in child.stdout:
        if len(seen) == after_acks:
            child.kill()
        if line.endswith("\n"):
            _, key, row = line.split()
            seen[key] = int(row)
    timer.cancel()
    child.wait()
    child.stdout.close()
    assert len(seen) >= after_acks
    return seen


def check(path: Path, acknowledged: dict[str, int]) -> None:
    with closing(sqlite3.connect(path)) as conn:
        assert conn.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    with SessionDB(path) as db:
        stored: dict[str, int] = {}
        for name in range(LIVES):
            for row in db.get_messages(f"n{name}"):
                assert "is lost" not in row["content"]
                stored[row["content"].split()[0]] = row["id"]
            session = db.get_session(f"n{name}")
            assert session is not None
            assert session["message_count"] == db.message_count(f"n{name}")
        assert {key: stored.get(key) for key in acknowledged} == acknowledged
        for word in ("the", "fox", "数据库", "done"):
            scanned = sorted(
                row["id"]
                for name in range(LIVES)
                for row in db.get_messages(f"n{name}")
                if word in row["content"].split()
            )
            assert sorted(row["id"] for row in db.search_messages(word, limit=100_000, sort="newest")) == scanned
    report = repair(path)
    assert report.lost == ()
    with SessionDB(path) as db:
        assert sqlite_of(db).read(
            lambda c: c.execute("SELECT count(*) FROM tool_runs WHERE status IS NULL").fetchone()
        ) == (0,)
    assert repair(path).was_sound
