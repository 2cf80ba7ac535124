"""Two runs of `hermes` on one session: the second is told, waits, or goes on in a copy."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from hermes.surfaces.cli.exit_codes import Exit
from hermes.testing.replies import calls, says
from hermes.testing.server import ScriptedServer, ServerThread
from hermes.types import JsonObject

Run = Callable[..., "subprocess.CompletedProcess[str]"]
MAIN = [sys.executable, "-m", "hermes.surfaces.cli.main"]


def model(server: ScriptedServer) -> list[str]:
    return ["--model", "scripted", "--base-url", server.base_url]


def wait_until(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        os.sched_yield()


def rows(home: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(home / "state.db")) as conn:
        return conn.execute(sql).fetchall()


@contextmanager
def at_work(
    server: ScriptedServer, environ: dict[str, str], session_id: str, gate: Path
) -> Iterator["subprocess.Popen[str]"]:
    """A run that is in the middle of a call of `session_id`, until `gate` is there."""
    words = [*MAIN, "chat", "--resume", session_id, "-q", "Work.", *model(server)]
    with subprocess.Popen(
        words, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            home = Path(environ["HERMES_HOME"])
            wait_until(lambda: rows(home, "SELECT 1 FROM tool_runs WHERE status IS NULL") or process.poll() is not None)
            assert process.poll() is None
            yield process
        finally:
            gate.touch()
            if process.poll() is None and process.returncode is None:
                process.wait(60)


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    return tmp_path / "gate"


def until_there(gate: Path) -> str:
    return f"until test -e {gate}; do sleep 0.05; done; echo through"


def first_session(run: Run, server: ScriptedServer) -> str:
    events = run("chat", "-q", "Hi.", "--json", *model(server)).stdout.splitlines()
    session_id: str = json.loads(events[-1])["session_id"]
    return session_id


def sent(server: ScriptedServer, number: int) -> list[JsonObject]:
    messages: list[JsonObject] = server.requests[number].json["messages"]
    return messages


@contextmanager
def sending(
    server: ScriptedServer, environ: dict[str, str], session_id: str, *words: str
) -> Iterator["subprocess.Popen[str]"]:
    """A run whose message waits in the line of a session that another works on."""
    command = [*MAIN, "chat", "--resume", session_id, "-q", "Me, too.", *words, *model(server)]
    with subprocess.Popen(
        command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        home = Path(environ["HERMES_HOME"])
        waiting = "SELECT 1 FROM queued_messages WHERE state = 'waiting'"
        wait_until(lambda: rows(home, waiting) or process.poll() is not None)
        yield process


def test_the_second_waits_in_line_and_is_answered_when_the_first_has_ended(
    run: Run, environ: dict[str, str], home: Path, gate: Path
) -> None:
    work = calls("terminal", command=until_there(gate))
    with ServerThread([says("Hi."), work, says("Worked."), says("Later.")]) as server:
        session_id = first_session(run, server)
        with at_work(server, environ, session_id, gate) as first, sending(server, environ, session_id) as second:
            gate.touch()
            stdout, _ = first.communicate(timeout=60)
            answer, told = second.communicate(timeout=60)
    assert (first.returncode, stdout) == (0, "Worked.\n")
    assert (second.returncode, answer) == (0, "Later.\n")
    assert re.match(
        rf"· session '{session_id}' is in use by pid {first.pid} since \d\d:\d\d; your message waits in its line", told
    )
    said = [message["content"] for message in sent(server, 3) if message["role"] in ("user", "assistant")]
    assert [text for text in said if text][-3:] == ["Work.", "Worked.", "Me, too."]
    assert rows(home, "SELECT * FROM leases") == []
    assert rows(home, "SELECT state FROM queued_messages") == [("done",)]


def test_control_c_takes_the_message_back_while_it_waits(
    run: Run, environ: dict[str, str], home: Path, gate: Path
) -> None:
    work = calls("terminal", command=until_there(gate))
    with ServerThread([says("Hi."), work, says("Worked.")]) as server:
        session_id = first_session(run, server)
        with at_work(server, environ, session_id, gate) as first:
            with sending(server, environ, session_id) as second:
                second.send_signal(signal.SIGINT)
                second.communicate(timeout=60)
            gate.touch()
            first.communicate(timeout=60)
    assert second.returncode == Exit.CANCELLED
    assert rows(home, "SELECT state, content FROM queued_messages") == [("dropped", None)]
    assert len(server.requests) == 3


def test_a_message_outlives_the_owner_that_was_killed(
    run: Run, environ: dict[str, str], home: Path, gate: Path
) -> None:
    work = calls("terminal", command=until_there(gate))
    with ServerThread([says("Hi."), work, says("I took over.")]) as server:
        session_id = first_session(run, server)
        with at_work(server, environ, session_id, gate) as first, sending(server, environ, session_id) as second:
            first.kill()
            first.communicate(timeout=60)
            answer, _ = second.communicate(timeout=60)
    assert (second.returncode, answer) == (0, "I took over.\n")


def test_with_wait_the_second_goes_on_where_the_first_ended(
    run: Run, environ: dict[str, str], gate: Path, home: Path
) -> None:
    work = calls("terminal", command=until_there(gate))
    with ServerThread([says("Hi."), work, says("Worked."), says("After you.")]) as server:
        session_id = first_session(run, server)
        with at_work(server, environ, session_id, gate) as first:
            words = [*MAIN, "chat", "--resume", session_id, "-q", "Me, too.", "--wait", "--json", *model(server)]
            with subprocess.Popen(words, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as second:
                assert second.stdout is not None
                waiting = json.loads(second.stdout.readline())
                gate.touch()
                first.communicate(timeout=60)
                events = [json.loads(line) for line in second.stdout]
    assert (waiting["type"], waiting["kind"]) == ("status", "waiting")
    assert f"in use by pid {first.pid}" in waiting["message"]
    assert (second.returncode, events[-1]["final_response"]) == (0, "After you.")
    said = [message["content"] for message in sent(server, 3) if message["role"] in ("user", "assistant")]
    assert [text for text in said if text] == ["Hi.", "Hi.", "Work.", "Worked.", "Me, too."]


def test_control_c_ends_the_waiting(run: Run, environ: dict[str, str], gate: Path) -> None:
    work = calls("terminal", command=until_there(gate))
    with ServerThread([says("Hi."), work, says("Worked.")]) as server:
        session_id = first_session(run, server)
        with at_work(server, environ, session_id, gate):
            words = [*MAIN, "chat", "--resume", session_id, "-q", "Me, too.", "--wait", *model(server)]
            with subprocess.Popen(
                words, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            ) as second:
                assert second.stderr is not None
                assert "waiting for it" in second.stderr.readline()
                second.send_signal(signal.SIGINT)
                stdout, stderr = second.communicate(timeout=60)
    assert (second.returncode, stdout, stderr) == (Exit.CANCELLED, "", "Stopped.\n")


def test_a_fork_goes_on_in_a_copy_and_leaves_the_original_to_whoever_has_it(
    run: Run, environ: dict[str, str], home: Path, gate: Path
) -> None:
    work = calls("terminal", command=until_there(gate))
    with ServerThread([says("Hi."), work, says("Copied."), says("Worked.")]) as server:
        session_id = first_session(run, server)
        with at_work(server, environ, session_id, gate) as first:
            done = run("chat", "--resume", session_id, "--fork", "-q", "What now?", *model(server))
            gate.touch()
            stdout, _ = first.communicate(timeout=60)
    assert (done.returncode, done.stdout) == (0, "Copied.\n")
    assert f"the original is {session_id}" in done.stderr
    assert (first.returncode, stdout) == (0, "Worked.\n")
    asked = sent(server, 2)
    (result,) = [str(message["content"]) for message in asked if message["role"] == "tool"]
    assert f"still running in session {session_id}" in result
    assert rows(home, "SELECT count(*) FROM sessions") == [(2,)]


def test_a_killed_run_holds_nobody_up_and_its_waiting_call_is_not_wondered_about(
    run: Run, environ: dict[str, str], gate: Path
) -> None:
    work = calls("terminal", command=until_there(gate)) + calls("terminal", command="echo second")
    with ServerThread([says("Hi."), work, says("I see.")]) as server:
        session_id = first_session(run, server)
        with at_work(server, environ, session_id, gate) as first:
            first.kill()
            first.communicate(timeout=60)
            done = run("chat", "--resume", session_id, "-q", "What happened?", *model(server))
    assert (done.returncode, done.stdout) == (0, "I see.\n")
    results = [str(message["content"]) for message in sent(server, 2) if message["role"] == "tool"]
    assert [text.split(":")[0] for text in results] == ["Outcome unknown", "Not run"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-q", "x", "--fork"], "--fork needs a session"),
        (["-q", "x", "--wait"], "--wait needs a session"),
    ],
)
def test_options_that_need_a_session_say_so(run: Run, words: list[str], told: str) -> None:
    done = run("chat", *words)
    assert done.returncode == Exit.USAGE
    assert told in done.stderr
