"""The line of messages in a SQLite file: several processes, kills, older files and damaged ones."""

import asyncio
import signal
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import get_args

import pytest

from hermes.ops import SessionCreated
from hermes.state import SessionDB, SqliteStore, schema
from hermes.state.message_line import MODES, STATES, BusyMode, MessageLine, QueuedMessage, QueueState
from hermes.state.sqlite.message_line import SqliteMessageLine
from hermes.types import Content
from tests.state.sqlite.test_schema_history import PAGE, as_of
from tests.state.test_processes import worker

OLD_LINE = (
    '[{"id":"a1","text":"was being worked on","taken_after":3},{"id":"b2","text":"caf\u00e9"},{"id":"c3","text":""}]'
)


def file_of(db: SessionDB) -> SqliteStore:
    assert isinstance(db.store, SqliteStore)
    return db.store


def texts(db: SessionDB, session_id: str = "s") -> list[tuple[Content, QueueState]]:
    return [(one.content, one.state) for one in db.store.message_line.read(session_id)]


def test_several_processes_neither_lose_nor_double_a_message(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    SessionDB(path).close()
    children = [worker("line", path, f"by {number}", 50) for number in range(4)]
    answers = [child.communicate(timeout=120) for child in children]
    assert [child.returncode for child in children] == [0] * 4, [error for _, error in answers if error]
    taken = [key for out, _ in answers for key in out.split()]
    with SessionDB(path) as db:
        left = [one.key for one in db.store.message_line.read("s")]
        states = file_of(db).read(
            lambda conn: conn.execute("SELECT count(*), count(DISTINCT key) FROM queued_messages")
        )
        assert states.fetchone() == (50, 50)
    assert sorted(taken + left) == sorted(f"k{number}" for number in range(50))


async def test_what_many_sessions_ask_of_a_loop_at_once_is_kept_and_moves_no_record(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    try:
        await store.commit(SessionCreated(session_id="s", source="cli"))
        before = store.version("s")
        async with asyncio.TaskGroup() as group:
            for number in range(32):
                message = QueuedMessage(key="k", content=str(number))
                group.create_task(store.in_line(partial(_added, session=f"s{number}", message=message)))
        at = store.read(lambda conn: conn.execute("SELECT count(*), count(DISTINCT session_id) FROM queued_messages"))
        assert at.fetchone() == (32, 32)
        assert store.version("s") == before  # no session's record has changed: none is read again
    finally:
        await store.close()


async def test_work_that_fails_changes_nothing_and_costs_its_neighbours_nothing(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")

    def half(line: MessageLine) -> None:
        line.add("s", QueuedMessage(key="half", content="half"))
        raise ValueError("on the way")

    async def fails() -> None:
        with pytest.raises(ValueError, match="on the way"):
            await store.in_line(half)

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(fails())
            whole = QueuedMessage(key="whole", content="whole")
            group.create_task(store.in_line(partial(_added, session="s", message=whole)))
        assert [one.key for one in store.message_line.read("s")] == ["whole"]
    finally:
        await store.close()


def _added(line: MessageLine, session: str, message: QueuedMessage) -> QueuedMessage:
    return line.add(session, message)


def test_what_a_living_process_works_on_is_its_own_until_it_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with SessionDB(path) as db:
        line = db.store.message_line
        for key in ("a", "b"):
            line.add("s", QueuedMessage(key=key, content=key))
        child = worker("take", path, "s", 1)
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "taken\n"
            assert [(one.key, one.state) for one in line.settle("s")] == [("a", "taken"), ("b", "waiting")]
            assert not line.take("s", "a")
            assert not line.put_back("s", "a")
            assert line.end("s", ["a"], "dropped") == 0
        finally:
            child.send_signal(signal.SIGKILL)
            child.communicate(timeout=30)
        assert [(one.key, one.state) for one in line.settle("s")] == [("a", "waiting"), ("b", "waiting")]


def test_what_a_killed_process_had_not_handed_on_is_not_lost_by_the_words_of_another(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        line = db.store.message_line
        for key in ("a", "b"):
            line.add("s", QueuedMessage(key=key, content=key))
        child = worker("take", path, "s", 1)
        assert child.stdout is not None
        assert child.stdout.readline() == "taken\n"
        child.send_signal(signal.SIGKILL)
        child.communicate(timeout=30)
        assert line.take("s", "b")
        db.append_message("s", "user", "b")
        line.end("s", ["b"], "done")
        assert [(one.key, one.state) for one in line.settle("s")] == [("a", "waiting")]


def test_one_taken_before_a_restart_of_the_machine_waits_again(tmp_path: Path) -> None:
    with SessionDB(tmp_path / "state.db") as db:
        line = db.store.message_line
        line.add("s", QueuedMessage(key="a", content="a"))
        line.take("s", "a")
        gone = "host/0a1b2c3d/4026531836:1:5"
        file_of(db).write(lambda conn: conn.execute("UPDATE queued_messages SET taken_by = ?", (gone,)).rowcount)
        assert [one.state for one in line.settle("s")] == ["waiting"]


def test_a_thousand_messages_cost_no_more_each_than_the_first(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db", durability="process")
    line = store.message_line

    def steps_of(key: str) -> int:
        """Of SQLite's machine, by hundreds."""
        counted: list[int] = []
        store.write(lambda conn: conn.set_progress_handler(lambda: counted.append(1), 100))
        line.add("s", QueuedMessage(key=key, content="x"), first=key.endswith("0"))
        line.take("s", key)
        line.end("s", [key], "done")
        store.write(lambda conn: conn.set_progress_handler(None, 0))
        return len(counted)

    few = [steps_of(f"few {number}") for number in range(11)]
    for number in range(1000):
        line.add("s", QueuedMessage(key=f"k{number}", content=f"words {number}"), first=number == 999)
    many = [steps_of(f"many {number}") for number in range(11)]
    assert [one.key for one in line.read("s")] == ["k999", *(f"k{number}" for number in range(999))]
    assert max(many) <= max(few) + 5
    store.close_sync()


def test_deleting_a_session_deletes_its_line(db: SessionDB) -> None:
    for session in ("s", "t"):
        db.create_session(session, "cli")
        db.store.message_line.add(session, QueuedMessage(key="a", content="private"))
    assert db.delete_session("s")
    rows = file_of(db).read(lambda conn: conn.execute("SELECT session_id FROM queued_messages").fetchall())
    assert rows == [("t",)]


def test_what_has_ended_leaves_no_words_in_the_table(db: SessionDB) -> None:
    line = db.store.message_line
    line.add("s", QueuedMessage(key="a", content="private"))
    line.end("s", ["a"], "dropped")
    assert file_of(db).read(lambda conn: conn.execute("SELECT content, state FROM queued_messages").fetchall()) == [
        (None, "dropped")
    ]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_the_lines_of_an_older_file_are_brought_along(tmp_path: Path, version: int) -> None:
    path = old_file(tmp_path, version)
    with SessionDB(path) as db:
        assert texts(db) == [("was being worked on", "taken"), ("caf\u00e9", "waiting"), ("", "waiting")]
        assert texts(db, "odd:id") == [("x", "waiting")]
        assert db.get_meta("waiting:s") is None
        assert db.get_meta("waiting:bad") == '[{"id":'
        assert db.get_meta("waitinglist") == "[]"
        db.create_session("s", "cli")
        assert [one.content for one in db.store.message_line.settle("s")] == ["was being worked on", "caf\u00e9", ""]
    assert len([*tmp_path.glob("state.db.schema*")]) == 1


def test_the_line_of_an_older_file_that_is_damaged_is_brought_along(tmp_path: Path) -> None:
    path = old_file(tmp_path, 3)
    with open(path, "r+b") as file:
        file.write(b"\0" * PAGE)
    with SessionDB(path) as db:
        assert file_of(db).salvaged is not None
        assert [text for text, _ in texts(db)] == ["was being worked on", "caf\u00e9", ""]


def old_file(folder: Path, version: int) -> Path:
    path = folder / "state.db"
    as_of(version, path)
    lines = {
        "waiting:s": OLD_LINE,
        "waiting:odd:id": '[{"id":"a1","text":"x"}]',
        "waiting:bad": '[{"id":',
        "waitinglist": "[]",
    }
    with closing(sqlite3.connect(path, isolation_level=None)) as conn:
        conn.execute("INSERT INTO schema_version(version) VALUES (?)", (version,))
        conn.executemany("INSERT INTO state_meta(key, value) VALUES (?, ?)", lines.items())
    return path


def test_a_mode_or_state_that_nobody_wrote_harms_no_message(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with SessionDB(path) as db:
        for key in ("mode", "state", "fine"):
            db.store.message_line.add("s", QueuedMessage(key=key, content=key, mode="steer"))
    with closing(sqlite3.connect(path, isolation_level=None)) as conn:
        with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
            conn.execute("UPDATE queued_messages SET mode = 'later' WHERE key = 'mode'")
        conn.execute("PRAGMA ignore_check_constraints = ON")
        conn.execute("UPDATE queued_messages SET mode = 'later' WHERE key = 'mode'")
        conn.execute("UPDATE queued_messages SET state = 'asleep' WHERE key = 'state'")
    with SessionDB(path) as db:
        line = db.store.message_line
        assert [(one.key, one.mode, one.state) for one in line.settle("s")] == [
            ("mode", "queue", "waiting"),
            ("state", "steer", "waiting"),
            ("fine", "steer", "waiting"),
        ]
        assert line.take("s", "mode")
        assert line.put_back("s", "mode")
        assert line.edit("s", "state", "edited")
        line.move("s", "t")
        file_of(db).salvage_if_damaged()
        assert [(one.content, one.mode, one.state) for one in line.read("t")] == [
            ("mode", "queue", "waiting"),
            ("edited", "steer", "waiting"),
            ("fine", "steer", "waiting"),
        ]


def test_the_words_of_the_schema_are_those_of_the_seam() -> None:
    columns = schema.TABLES["queued_messages"]
    assert columns["mode"].endswith(f"CHECK (mode IN {get_args(BusyMode)!r})")
    assert columns["state"].endswith(f"CHECK (state IN {get_args(QueueState)!r})")
    assert (MODES[0], STATES[0]) == ("queue", "waiting")


def test_a_salvaged_file_has_all_that_waited(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with SessionDB(path) as db:
        line = db.store.message_line
        assert isinstance(line, SqliteMessageLine)
        for number in range(300):
            line.add("s", QueuedMessage(key=f"k{number}", content=f"words {number} " * (1 + number % 7 * 300)))
        line.take("s", "k0")
        line.end("s", ["k1"], "done")
        before = line.read("s")
    with open(path, "r+b") as file:
        file.write(b"\0" * PAGE)
    with SessionDB(path) as db:
        assert file_of(db).salvaged is not None
        assert db.store.message_line.read("s") == before
        assert db.store.message_line.add("s", QueuedMessage(key="k1", content="again")).state == "done"
