"""Every command that reads, on files damaged in every way: it ends cleanly and brings back what nobody touched."""

import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import SessionNotFound
from hermes.state import SessionDB
from hermes.state.schema import MESSAGE_COLUMNS
from hermes.surfaces.cli.chat.resume import resumed_session
from hermes.surfaces.cli.chat.run_options import Wish
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.exit_codes import Exit
from hermes.surfaces.cli.output import Output
from hermes.surfaces.cli.start import run as run_here
from tests.state.opened import sqlite_of
from tests.surfaces.cli.damages import damage, untouched

FULL = os.environ.get("HERMES_TEST_FULL") == "1"
DAMAGES = 500 if FULL else 50

Messages = dict[int, tuple[str, str]]

KILLED = """
import os, signal, sys
from hermes.state import SessionDB
db = SessionDB(sys.argv[1])
for number in range(12):
    db.append_message("s1", "user", f"s1 message late {number} needle")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A home that was left in order, and one whose process was killed with its last messages in the log."""
    left = tmp_path_factory.mktemp("left")
    with SessionDB(left / "state.db") as db:
        for number in range(5):
            name = f"s{number}"
            db.create_session(name, "cli", system_prompt=f"Prompt {number} " * 99, title=f"Title {number}")
            for place in range(16):
                role = ("user", "assistant", "tool")[place % 3]
                db.append_message(name, role, f"{name} message {place} needle " + "wörds " * (place * 40 % 700))
            db.record_auxiliary_usage(name, "title", model="m", billing_provider="p", input_tokens=3)
        sqlite_of(db).index_all()
        db.delete_session("s4")
        sqlite_of(db).reclaim()
    killed = tmp_path_factory.mktemp("killed")
    shutil.copytree(left, killed, dirs_exist_ok=True)
    source = str(Path(__file__).parents[3] / "src")
    command = [sys.executable, "-c", KILLED, str(killed / "state.db")]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": source}, check=False)
    return left, killed


def hermes(home: Path, *words: str) -> tuple[int, str]:
    """Exit code and stdout of one command; it must not show a traceback."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setenv("HERMES_HOME", str(home))
        code = run_here(list(words))
    told = [stream.buffer.getvalue().decode() for stream in (out, err)]
    assert "Traceback" not in told[0] + told[1]
    assert code in (Exit.ANSWERED, Exit.FAILED), told
    return code, told[0]


def exported(home: Path) -> set[tuple[str, str]]:
    _, text = hermes(home, "sessions", "export")
    sessions = [json.loads(line) for line in text.splitlines()]
    return {(session["id"], str(message["content"])) for session in sessions for message in session["messages"]}


def export(home: Path, expected: Messages) -> None:
    assert set(expected.values()) <= exported(home)


def show(home: Path, expected: Messages) -> None:
    for name in sorted({session for session, _ in expected.values()}):
        session = json.loads(hermes(home, "sessions", "show", name, "--json")[1])
        shown = {(name, str(message["content"])) for message in session["messages"]}
        assert {each for each in expected.values() if each[0] == name} <= shown


def list_(home: Path, expected: Messages) -> None:
    rows = json.loads(hermes(home, "sessions", "list", "--limit", "1000", "--json")[1] or "[]")
    assert {session for session, _ in expected.values()} <= {row["id"] for row in rows}
    hermes(home, "sessions", "list")


def search(home: Path, expected: Messages) -> None:
    words = ("sessions", "search", "needle", "--limit", "1000", "--each", "1000", "--json")
    found = [json.loads(hermes(home, *words, *more)[1] or "[]") for more in ((), ("--role", "tool"))]
    assert expected.keys() <= {hit["id"] for each in found for conversation in each for hit in conversation["hits"]}


def stats(home: Path, expected: Messages) -> None:
    assert json.loads(hermes(home, "sessions", "stats", "--json")[1])["messages"] >= len(expected)


def usage(home: Path, _: Messages) -> None:
    for by in ("all", "day", "session"):
        json.loads(hermes(home, "usage", "--by", by, "--json")[1])
    hermes(home, "usage")


def repair(home: Path, expected: Messages) -> None:
    hermes(home, "sessions", "repair")
    export(home, expected)
    assert json.loads(hermes(home, "sessions", "repair", "--json")[1])["sound"]


def check_only(home: Path, expected: Messages) -> None:
    file = home / "state.db"
    before = file.read_bytes()
    hermes(home, "sessions", "repair", "--check-only")
    assert file.read_bytes() == before
    export(home, expected)


def resume(home: Path, expected: Messages) -> None:
    cli = Cli(home=home, environ={}, out=Output.of_process({}))
    for name in sorted({session for session, _ in expected.values()}):
        assert resumed_session(cli, Wish(resume=name)) == name
        with SessionDB(home / "state.db") as db:
            record = sqlite_of(db).load_sync(name)
        assert record is not None
        loaded = {(name, str(message.content)) for message in record.messages}
        assert {each for each in expected.values() if each[0] == name} <= loaded
    if not expected:
        with pytest.raises(SessionNotFound):
            resumed_session(cli, Wish(resume="nobody"))


def recovered(path: Path, scratch: Path) -> dict[int, tuple[str, str]]:
    """What `sqlite3 .recover` brings back of the messages, also of those that it cannot place."""
    sql = subprocess.run(["sqlite3", str(path), ".recover"], capture_output=True, check=False).stdout
    scratch.unlink(missing_ok=True)
    subprocess.run(["sqlite3", str(scratch)], input=sql, capture_output=True, check=False)
    found: dict[int, tuple[str, str]] = {}
    width = len(MESSAGE_COLUMNS)
    with closing(sqlite3.connect(scratch)) as conn:
        conn.text_factory = lambda raw: raw.decode("utf-8", "replace")
        for select in (
            f"SELECT id, c1, c3 FROM lost_and_found WHERE nfield = {width}",
            "SELECT id, session_id, content FROM messages",
        ):
            with suppress(sqlite3.OperationalError):  # nothing of the kind was found
                found |= {row[0]: (row[1], row[2]) for row in conn.execute(select)}
    return found


COMMANDS: tuple[Callable[[Path, Messages], Any], ...] = (
    export, show, list_, search, stats, usage, repair, check_only, resume
)  # fmt: skip


@pytest.mark.parametrize("group", range(10))
def test_every_reading_command_brings_back_what_nobody_touched(
    stores: tuple[Path, Path], tmp_path: Path, group: int
) -> None:
    damaged, home = tmp_path / "damaged", tmp_path / "home"
    for seed in range(group, DAMAGES, 10):
        kind, expected = damaged_copy(stores, damaged, seed)
        assert expected or kind in ("emptied", "cut_off", "in_header")
        # Each command meets the damage first; without --full two of them per damage do.
        for command in COMMANDS if FULL else (COMMANDS[seed % 9], COMMANDS[(seed // 9 + seed) % 9]):
            shutil.copytree(damaged, home)
            try:
                command(home, expected)
            except BaseException as error:
                error.add_note(f"seed {seed}: {kind}, {command.__name__}")
                raise
            shutil.rmtree(home)
        shutil.rmtree(damaged)


def test_an_export_brings_back_at_least_what_sqlite_recovers(stores: tuple[Path, Path], tmp_path: Path) -> None:
    if not shutil.which("sqlite3") or not recovered(stores[0] / "state.db", tmp_path / "scratch"):
        pytest.skip("needs a sqlite3 whose .recover works; that of Debian 12 is built without it")
    damaged, copy = tmp_path / "damaged", tmp_path / "copy"
    for seed in range(0, DAMAGES, 1 if FULL else 5):
        kind, _ = damaged_copy(stores, damaged, seed)
        shutil.copytree(damaged, copy)
        # What .recover has made of damaged bytes is not compared: only what was said.
        theirs = {each for each in recovered(copy / "state.db", tmp_path / "scratch").values() if each in said(stores)}
        assert theirs <= exported(damaged), f"seed {seed}: {kind}"
        shutil.rmtree(damaged)
        shutil.rmtree(copy)


def damaged_copy(stores: tuple[Path, Path], folder: Path, seed: int) -> tuple[str, Messages]:
    """One of the stores in `folder`, damaged; how, and the messages that are untouched."""
    source = stores[seed // 9 % 2]
    shutil.copytree(source, folder)
    if source is stores[0]:
        SessionDB(folder / "state.db").close()  # left in order here, too
    before = (folder / "state.db").read_bytes()
    kind = damage(folder / "state.db", seed)
    return kind, untouched(before, (folder / "state.db").read_bytes(), source / "state.db")


def said(stores: tuple[Path, Path]) -> set[tuple[str, str]]:
    with closing(sqlite3.connect(f"{(stores[0] / 'state.db').as_uri()}?immutable=1", uri=True)) as conn:
        found = set(conn.execute("SELECT session_id, content FROM messages"))
    return found | {("s1", f"s1 message late {number} needle") for number in range(12)}
