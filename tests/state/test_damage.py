"""Damaged, foreign, older and newer files."""

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from hermes.errors import StoreError, StoreUnavailable
from hermes.ops import AttemptOpened, CallJournalled, MessageAppended, SessionCreated
from hermes.state import SessionDB, SqliteStore
from hermes.state.message_rows import message_row
from hermes.state.sqlite.examine import faults_of
from hermes.state.sqlite.lock import Seal
from hermes.state.sqlite.repair import repair
from hermes.state.sqlite.salvage import DAMAGED_MESSAGE, salvage
from hermes.state.sqlite.tables import watermark
from hermes.types import Message, ToolCall
from tests.state.opened import sqlite_of

PIXELS = "data:image/png;base64," + "iVBORw0KGgoA" * 400


def filled(path: Path, sessions: int = 6, messages: int = 60) -> dict[str, list[str]]:
    """A store with known words in it, checkpointed into its main file."""
    said: dict[str, list[str]] = {}
    with SessionDB(path) as db:
        for number in range(sessions):
            name = f"s{number}"
            db.create_session(name, "cli", system_prompt="P" * 3000)
            said[name] = [f"{name} message {n} " + "words " * (n * 40 % 900) for n in range(messages)]
            for text in said[name]:
                db.append_message(name, "user", text)
        sqlite_of(db).index_all()
        sqlite_of(db).reclaim()
    return said


def overwrite_start(path: Path, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.write(data)


def kept(path: Path) -> dict[str, list[str]]:
    with SessionDB(path) as db:
        ids = [row["id"] for row in db.list_sessions_rich(limit=100)]
        return {name: [row["content"] for row in db.get_messages(name)] for name in sorted(ids)}


@pytest.mark.parametrize("length", [100, 4096], ids=["header", "first-page"])
def test_a_file_without_its_beginning_is_kept_aside_and_everything_is_salvaged(tmp_path: Path, length: int) -> None:
    path = tmp_path / "state.db"
    said = filled(path)
    overwrite_start(path, b"\0" * length)
    damaged = path.read_bytes()

    store = SqliteStore(path)
    assert store.salvaged is not None
    aside = store.salvaged.aside
    assert aside.read_bytes() == damaged
    assert str(aside) in store.notes[0]
    prompt = store.load_sync("s0")
    assert prompt is not None
    assert prompt.system_prompt == "P" * 3000
    store.close_sync()
    assert kept(path) == said
    with SessionDB(path) as db:
        assert len(db.search_messages("message", limit=1000)) == 360


@pytest.mark.parametrize("seed", range(6))
def test_a_file_with_torn_pages_gives_back_what_is_readable(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "state.db"
    said = filled(path)
    rng = random.Random(seed)
    pages = path.stat().st_size // 4096
    with open(path, "r+b") as file:
        for _ in range(3):
            file.seek(rng.randrange(1, pages) * 4096)
            file.write(rng.randbytes(4096))
    report = repair(path)
    with closing(sqlite3.connect(path)) as conn:
        assert conn.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    after = kept(path)
    total = sum(len(texts) for texts in said.values())
    # A torn page holds at most some dozens of these rows; all others must be there, and none may be invented.
    assert sum(len(texts) for texts in after.values()) >= total - 3 * 45
    assert all(set(texts) <= {*said[name], DAMAGED_MESSAGE} for name, texts in after.items())
    if report.aside is not None:
        assert report.aside.exists()
        assert str(report.aside) in "\n".join(report.lines())


def test_damage_inside_one_message_costs_that_message_alone(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    said = filled(path)
    spoil(path, b"s2 message 7 ", b"\xff\xfe\x80" * 4)
    before = path.read_bytes()
    assert [line for line in faults_of(path) if "of messages: content cannot be read" in line] == faults_of(path)
    assert path.read_bytes() == before, "looking changes nothing"

    after = kept(path)
    said["s2"][7] = DAMAGED_MESSAGE
    assert after == said
    assert faults_of(path) == []
    with SessionDB(path) as db:
        assert sqlite_of(db).notes == []
        assert len(db.search_messages('"s2 message 8"')) == 1
        db.append_message("s2", "user", "on we go")


def test_damage_inside_the_calls_of_a_message_leaves_its_words(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        call = {"id": "c1", "type": "function", "function": {"name": "deploy", "arguments": "{}"}}
        db.append_message("s", "assistant", "I will.", tool_calls=[call])
        db.append_message("s", "assistant", None, tool_calls=[call])
    spoil(path, b'[{"id":"c1"', b"\xff", every=True)
    with SessionDB(path) as db:
        found = [(row["content"], row["tool_calls"]) for row in db.get_messages("s")]
    assert found == [("I will.", None), (DAMAGED_MESSAGE, None)]


def test_damage_that_comes_while_the_file_is_in_use_is_met_by_the_next_read(tmp_path: Path) -> None:
    """Even where the time of the file does not tell, as with a bad disk."""
    path = tmp_path / "state.db"
    said = filled(path)
    with SessionDB(path) as db:
        stat = path.stat()
        spoil(path, b"s2 message 7 ", b"\xff\xfe\x80" * 4)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        said["s2"][7] = DAMAGED_MESSAGE
        assert [row["content"] for row in db.get_messages("s2")] == said["s2"]
        assert sqlite_of(db).salvaged is not None
        db.append_message("s2", "user", "on we go")
    assert kept(path)["s2"] == [*said["s2"], "on we go"]


def test_a_damaged_index_that_hides_rows_without_a_word_is_found(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    said = filled(path)
    with closing(sqlite3.connect(path)) as conn:
        where = "name = 'idx_messages_session' AND pagetype = 'leaf'"
        numbers = [row[0] for row in conn.execute(f"SELECT pageno FROM dbstat WHERE {where}")]
    with open(path, "r+b") as file:
        for number in numbers:
            file.seek((number - 1) * 4096 + 3)
            file.write(b"\0\1")  # one entry where there were many
    assert kept(path) == said


def test_an_empty_file_where_there_was_a_database_is_told(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    filled(path, 1, 1)
    path.write_bytes(b"")
    assert faults_of(path) == ["it is empty, and there was something in it"]
    with SessionDB(path) as db:
        assert "the session file was there and is empty now" in sqlite_of(db).notes[0]
        assert db.session_count() == 0
    assert list(tmp_path.glob("*.damaged-*")) == []
    with SessionDB(path) as db:
        assert sqlite_of(db).notes == [], "told once"
    path.write_bytes(b"")
    report = repair(path)
    assert (report.lost, report.aside) == (("everything",), None)
    fresh = tmp_path / "fresh.db"
    fresh.touch()
    with SessionDB(fresh) as db:
        assert sqlite_of(db).notes == []


def test_an_emptied_file_gives_back_what_its_log_holds(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        db.append_message("s", "user", "only in the log")
        for side in ("", "-wal", "-lock"):
            shutil.copy(f"{path}{side}", tmp_path / f"killed.db{side}")
    killed = tmp_path / "killed.db"
    killed.write_bytes(b"")
    assert kept(killed) == {"s": ["only in the log"]}


def test_a_file_as_it_was_left_is_not_looked_through(tmp_path: Path) -> None:
    """A look through everything at each start would cost seconds in a large store."""
    path = tmp_path / "state.db"
    said = filled(path, 2, 100)  # more commits than one checkpoint takes
    seal = Seal(path)
    assert seal.is_unbroken()
    with SessionDB(path) as db:
        for number in range(200):
            db.append_message("s0", "user", f"more {number}")
        db.vacuum()
        assert seal.is_unbroken()
        with SessionDB(path) as other:
            other.append_message("s1", "user", "from another")
        assert seal.is_unbroken()
    assert seal.is_unbroken()
    crashed = "import os, signal, sys; from hermes.state import SessionDB; db = SessionDB(sys.argv[1]);"
    crashed += "[db.append_message('s0', 'user', 'x') for _ in range(30)]; os.kill(os.getpid(), signal.SIGKILL)"
    source = str(Path(__file__).parents[2] / "src")
    subprocess.run([sys.executable, "-c", crashed, str(path)], env={**os.environ, "PYTHONPATH": source}, check=False)
    assert seal.is_unbroken()
    assert len(kept(path)["s0"]) == len(said["s0"]) + 230
    with open(path, "r+b") as file:
        file.seek(path.stat().st_size - 1)
        file.write(b"\0")
    assert not seal.is_unbroken()


def test_a_commit_of_many_pages_does_not_cost_the_search_index(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    texts = [
        {"role": "user", "content": f"needle{number} " + "x" * 12_000, "timestamp": 1.0} for number in range(3_000)
    ]
    with SessionDB(path) as db:
        head = {"id": "s", "source": "cli", "model": "m", "started_at": 1.0}
        db.queries.add_session(head, [message_row(text, 1.0) for text in texts])
        db.append_message("s", "user", "one more")
        db.append_message("s", "user", "and one")
        log = path.with_name("state.db-wal")
        assert log.stat().st_size < 32 << 20  # it was moved into the file
        sqlite_of(db).index_all()
        assert Seal(path).is_unbroken()
    assert Seal(path).is_unbroken()
    with SessionDB(path) as db:
        assert sqlite_of(db).read(watermark) == 3_002


def test_an_index_that_was_emptied_is_made_again_also_where_nobody_writes(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    filled(path, 2, 600)
    os.utime(path)
    assert not Seal(path).is_unbroken()
    with SessionDB(path) as db:
        deadline = time.monotonic() + 60
        while sqlite_of(db).read(watermark) < 1_200:
            assert time.monotonic() < deadline
            time.sleep(0.01)


@pytest.mark.parametrize("cut", [0, 1], ids=["whole", "without its first page"])
def test_what_is_salvaged_from_a_sound_file_is_the_file(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "state.db"
    filled(path)
    with SessionDB(path) as db:
        db.append_message("s0", "user", "数" * 9_000)
        db.append_message("s1", "assistant", "\ud800 lone", tool_calls=[{"id": "c"}], reasoning_details=[{"a": 1}])
        before = db.export_all()
    overwrite_start(path, b"\0" * 4096 * cut)
    salvaged = salvage(path)
    assert salvaged.damaged == 0
    assert salvaged.is_all
    with SessionDB(path) as db:
        assert db.export_all() == before


def spoil(path: Path, where: bytes, by: bytes, *, every: bool = False) -> None:
    """Put `by` in the middle of `where` it stands."""
    data = bytearray(path.read_bytes())
    at = data.find(where)
    while at >= 0:
        data[at + 4 : at + 4 + len(by)] = by
        at = data.find(where, at + 1) if every else -1
    path.write_bytes(data)


def test_a_file_that_is_something_else_is_kept_aside(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.write_text("this was never a database, but it is somebody's file " * 200)
    with SessionDB(path) as db:
        salvaged = sqlite_of(db).salvaged
        assert salvaged is not None
        assert "never a database" in salvaged.aside.read_text()
        assert db.session_count() == 0


DAMAGE_AND_REPAIR = """
import sys
from hermes.state.sqlite.repair import repair
with open(sys.argv[1], "r+b") as file:
    file.seek(4 * 4096)
    file.write(b"\\xa5" * 3 * 4096)
report = repair(sys.argv[1])
sys.exit(0 if report.aside else 9)
"""


def test_a_store_in_use_follows_a_file_that_another_process_repaired(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    filled(path, 2, 40)
    with SessionDB(path) as user:
        assert user.message_count() == 80
        source = str(Path(__file__).parents[2] / "src")
        command = [sys.executable, "-c", DAMAGE_AND_REPAIR, str(path)]
        subprocess.run(command, env={**os.environ, "PYTHONPATH": source}, check=True, capture_output=True)
        before = user.message_count()
        user.append_message("s0", "user", "later")
        assert user.message_count() == before + 1
        with SessionDB(path) as other:
            assert other.message_count() == before + 1


def test_a_newer_schema_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    filled(path, 1, 1)
    with closing(sqlite3.connect(path)) as conn:
        conn.execute("PRAGMA user_version = 999")
        conn.execute("UPDATE schema_version SET version = 999")
        conn.commit()
    with pytest.raises(StoreUnavailable, match=r"newer Hermes \(schema 999"):
        SqliteStore(path)
    with closing(sqlite3.connect(path)) as conn:
        assert conn.execute("PRAGMA user_version").fetchone()[0] == 999


def foreign(path: Path) -> None:
    """A file as Hermes Agent's documentation describes it, with its own indexes and triggers."""
    with closing(sqlite3.connect(path)) as conn:
        conn.executescript("""
            CREATE TABLE schema_version (version INTEGER);
            INSERT INTO schema_version VALUES (11);
            CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, model TEXT, title TEXT, started_at REAL,
                ended_at REAL, end_reason TEXT, message_count INTEGER DEFAULT 0, parent_session_id TEXT);
            CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT, content TEXT,
                tool_calls TEXT, timestamp REAL);
            CREATE VIRTUAL TABLE messages_fts USING fts5(content, content=messages, content_rowid=id);
            CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages BEGIN
                INSERT INTO messages_fts(rowid, content) VALUES (new.id, new.content); END;
            INSERT INTO sessions VALUES ('a', 'cli', 'm', 'Same', 1.0, NULL, NULL, 2, NULL);
            INSERT INTO sessions VALUES ('b', 'cli', 'm', 'Same', 2.0, NULL, NULL, 0, NULL);
            INSERT INTO messages(session_id, role, content, timestamp) VALUES ('a', 'user', 'an old question', 1.0);
        """)
        conn.execute(
            "INSERT INTO messages(session_id, role, content, timestamp) VALUES ('a', 'user', ?, 2.0)",
            ('\0json:[{"type": "text", "text": "parts"}]',),
        )
        conn.commit()


def test_a_file_of_hermes_agent_is_taken_over_after_a_copy(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    foreign(path)
    with SessionDB(path) as db:
        assert [row["content"] for row in db.get_messages("a")] == [
            "an old question",
            [{"type": "text", "text": "parts"}],
        ]
        assert len(db.search_messages("question")) == 1
        assert (db.get_session_title("a"), db.get_session_title("b")) == (None, "Same")
        db.append_message("a", "user", "a new question")
        assert len(db.search_messages("question")) == 2
        (copy,) = tmp_path.glob("state.db.schema0-*")
        assert str(copy) in sqlite_of(db).notes[0]
    with closing(sqlite3.connect(copy)) as conn:
        assert conn.execute("SELECT count(*) FROM messages").fetchone()[0] == 2
        assert conn.execute("SELECT count(*) FROM sqlite_master WHERE type = 'trigger'").fetchone()[0] == 1


def test_a_migration_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    foreign(path)
    with closing(sqlite3.connect(path)) as conn:
        conn.executescript("CREATE VIEW tool_runs AS SELECT 1 AS id;")  # takes a name that the schema needs
        before = conn.execute("SELECT name FROM sqlite_master ORDER BY name").fetchall()
    with pytest.raises(StoreUnavailable):
        SqliteStore(path)
    with closing(sqlite3.connect(path)) as conn:
        assert conn.execute("SELECT name FROM sqlite_master ORDER BY name").fetchall() == before
        assert conn.execute("PRAGMA user_version").fetchone()[0] == 0


CRASH = """
import asyncio, os, signal, sys
from hermes.ops import *
from hermes.state import SqliteStore
from hermes.types import *
store = SqliteStore(sys.argv[1])
call = ToolCall("c1", "deploy", "{}")
store.commit_sync(
    SessionCreated(session_id="s"), MessageAppended("s", Message(role="user", content="deploy it")),
    AttemptOpened(attempt_id="a1", session_id="s", purpose="turn", provider="p", model="m"),
    MessageAppended("s", Message(role="assistant", tool_calls=(call,))), CallJournalled("s", call))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_repair_tells_the_model_about_a_call_that_never_ended(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    source = str(Path(__file__).parents[2] / "src")
    subprocess.run([sys.executable, "-c", CRASH, str(path)], env={**os.environ, "PYTHONPATH": source}, check=False)
    with SessionDB(path) as db:
        record = sqlite_of(db).load_sync("s")
        assert record is not None
        assert [run.call.name for run in record.open_calls] == ["deploy"]
    report = repair(path)
    assert [line.split(":")[0] for line in report.done] == [
        "1 tool calls had started and never ended",
        "1 of them were answered in the transcript, so that the model is told",
        "1 model requests were never closed",
        "3 messages were not in the search index yet",
    ]
    with SessionDB(path) as db:
        last = db.get_messages("s")[-1]
        assert (last["role"], last["status"], last["tool_call_id"]) == ("tool", "unknown", "c1")
        assert db.list_attempts()[0]["outcome"] == "unknown"
    assert repair(path).lines() == [f"{path}: sound, nothing to repair"]


def test_repair_leaves_calls_of_living_processes_alone(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    store.commit_sync(
        SessionCreated(session_id="s"),
        AttemptOpened(attempt_id="a", session_id="s", purpose="turn", provider="p", model="m"),
        CallJournalled("s", ToolCall("c", "t")),
    )
    assert repair(tmp_path / "state.db").was_sound
    store.close_sync()


def test_repair_counts_anew_adopts_orphans_and_finds_torn_blobs(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    filled(path, 2, 3)
    with SessionDB(path) as db:
        db.append_message("s0", "user", "torn " * 20_000)
        db.append_message("s1", "user", [{"type": "image_url", "image_url": {"url": PIXELS}}])
        sqlite_of(db).index_all()
        sqlite_of(db).write(
            lambda conn: conn.execute("UPDATE sessions SET message_count = 99 WHERE id = 's0'").rowcount
        )
        sqlite_of(db).write(lambda conn: conn.execute("DELETE FROM sessions WHERE id = 's1'"))
        torn = next(file for file in sqlite_of(db).blobs.files() if file.stat().st_size == 100_000)
        torn.write_bytes(b"half")
        # The session still opens, and says where something is missing.
        assert db.get_messages("s0")[-1]["content"].startswith("[The stored content of this message is lost: blob")
    report = repair(path)
    assert [line.split(" ", 1)[1] for line in report.done] == [
        "session rows were made anew for messages without one",
        "sessions had a wrong message count",
    ]
    assert [torn.name in line for line in report.lost] == [True]
    with SessionDB(path) as db:
        session = db.get_session("s1")
        assert session is not None
        assert (session["source"], session["message_count"]) == ("recovered", 4)
        db.append_message("s0", "user", "torn " * 20_000)
        assert db.get_messages("s0")[-2]["content"] == "torn " * 20_000, "the same content written again heals it"


def test_repair_of_nothing_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no session file"):
        repair(tmp_path / "none.db")
    assert list(tmp_path.iterdir()) == []


async def test_content_larger_than_a_page_survives_a_raw_read(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = SqliteStore(path)
    texts = ["a" * 30_000, "\ud800 lone", "数" * 9_000, ""]
    await store.commit(
        SessionCreated(session_id="s"), *(MessageAppended("s", Message(role="user", content=t)) for t in texts)
    )
    await store.close()
    overwrite_start(path, b"\xff" * 4096)
    mended = SqliteStore(path)
    record = mended.load_sync("s")
    assert record is not None
    assert [message.content for message in record.messages] == texts
    mended.close_sync()
