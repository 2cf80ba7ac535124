"""The process tool: background commands from start to end, across runtimes, with and without a terminal."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from hermes.redact import Redactor
from hermes.tools.builtin.process import process
from hermes.tools.builtin.terminal import terminal
from hermes.tools.environments.background import background_of
from hermes.tools.environments.local import LocalEnvironment, LocalOptions
from hermes.tools.supervisor.supervisor import ProcessSupervisor
from tests.tools.terminal_room import Room, ToldGate, told


async def make_room(folder: Path, *secrets: str) -> Room:
    supervisor = ProcessSupervisor()
    (folder / "work").mkdir(exist_ok=True)
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}
    env |= {f"PASSED_{number}": secret for number, secret in enumerate(secrets)}
    options = LocalOptions(env=env, processes_folder=folder / "processes", redactor=Redactor(secrets))
    return Room(LocalEnvironment(supervisor, str(folder / "work"), options), supervisor, folder)


async def leave(room: Room) -> None:
    await background_of(room.environment).end_session("s1")
    await room.environment.close()
    await room.supervisor.close()


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    one = await make_room(tmp_path)
    yield one
    await leave(one)


async def start(room: Room, command: str, **options: Any) -> str:
    answer = told(await terminal({"command": command, "background": True, **options}, ctx=room))
    assert answer["output"] == "Background process started", answer
    return str(answer["session_id"])


async def act(room: Room, action: str, ident: str = "", **options: Any) -> dict[str, Any]:
    args: dict[str, Any] = {"action": action, **options}
    return told(await process({**args, "session_id": ident} if ident else args, ctx=room))


async def until(room: Room, ident: str, text: str) -> str:
    """The log once it holds `text`."""
    async with asyncio.timeout(20):
        while text not in (log := (await act(room, "log", ident))["output"]):  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.02)
    return str(log)


async def test_a_background_command_is_followed_to_its_end(room: Room) -> None:
    await terminal({"command": "export NAME=world; cd .."}, ctx=room)
    ident = await start(room, 'echo "hello $NAME"; pwd; read -r line; echo "got $line"; exit 7')
    await until(room, ident, "hello world")
    polled = await act(room, "poll", ident)
    assert (polled["status"], polled["command"]) == ("running", polled["command"])
    assert await act(room, "submit", ident, data="it") == {"session_id": ident, "status": "ok", "bytes_written": 3}
    ended = await act(room, "wait", ident)
    assert (ended["status"], ended["exit_code"]) == ("exited", 7)
    assert ended["output"] == f"hello world\n{room.environment.cwd}\ngot it\n"
    listed = (await act(room, "list"))["processes"]
    assert [(each["session_id"], each["status"], each["exit_code"]) for each in listed] == [(ident, "exited", 7)]


async def test_no_known_secret_is_stored_with_a_background_process(tmp_path: Path) -> None:
    secret = "canary-Horse/Battery+9"
    room = await make_room(tmp_path, secret)
    cut = "printf '%s' \"${PASSED_0:0:9}\"; read -r _; printf '%s\\n' \"${PASSED_0:9}\""
    ident = await start(room, f"echo $PASSED_0; echo given {secret}; echo ready; {cut}; read -r _")
    await until(room, ident, "ready")
    await act(room, "submit", ident, data="go")
    async with asyncio.timeout(20):
        while (await act(room, "log", ident))["output"].count("secret#") < 3:  # noqa: ASYNC110 - its keeper writes it
            await asyncio.sleep(0.02)
    assert (await act(room, "poll", ident))["command"].count("secret#") == 1
    stored = [file for file in (tmp_path / "processes").rglob("*") if file.is_file()]
    assert {file.name for file in stored} >= {"log", "record.json"}
    assert [file for file in stored if b"Battery" in file.read_bytes()] == []
    await leave(room)


async def test_kill_leaves_nothing_below_it_alive(room: Room) -> None:
    ident = await start(room, "trap '' TERM; (setsid sleep 7201 &) ; echo up; while :; do sleep 7201; done")
    await until(room, ident, "up")
    pid = (await act(room, "poll", ident))["pid"]
    below = psutil.Process(pid).children(recursive=True)
    killed = await act(room, "kill", ident)
    assert (killed["status"], killed["exit_code"]) == ("killed", 137)
    assert [each for each in below if each.is_running() and each.status() != psutil.STATUS_ZOMBIE] == []
    assert (await act(room, "kill", ident))["status"] == "already_exited"
    assert (await act(room, "write", ident, data="x"))["status"] == "already_exited"


async def test_close_ends_the_input(room: Room) -> None:
    ident = await start(room, "cat; echo done")
    await act(room, "write", ident, data="some text")
    await act(room, "close", ident)
    assert (await act(room, "wait", ident))["output"] == "some textdone\n"


async def test_the_log_is_paged_by_lines_from_its_end(room: Room) -> None:
    ident = await start(room, "seq 1 500")
    await act(room, "wait", ident)
    last = await act(room, "log", ident, limit=3)
    assert (last["output"], last["total_lines"], last["showing"]) == ("498\n499\n500", 500, "498-500")
    assert (await act(room, "log", ident, offset=2, limit=2))["output"] == "2\n3"


async def test_waiting_ends_at_its_timeout_and_the_process_goes_on(room: Room) -> None:
    ident = await start(room, "echo up; sleep 7202")
    waited = await act(room, "wait", ident, timeout=1)
    assert (waited["status"], waited["output"]) == ("timeout", "up\n")
    assert (await act(room, "poll", ident))["status"] == "running"


async def test_unknown_ids_and_denied_commands_are_told(room: Room) -> None:
    assert (await act(room, "poll", "proc_000000000000"))["status"] == "not_found"
    assert (await act(room, "poll", "../escape"))["status"] == "not_found"
    assert "session_id is required" in (await act(room, "poll"))["error"]
    room.gate = ToldGate("sleep")
    denied = told(await terminal({"command": "sleep 5", "background": True}, ctx=room))
    assert denied["status"] == "blocked"
    assert room.gate.asked[0].route == "background"


async def test_it_survives_a_restart_of_the_runtime(tmp_path: Path) -> None:
    first = await make_room(tmp_path)
    ident = await start(first, "echo up; read -r line; echo got $line; exit 5")
    await until(first, ident, "up")
    await first.environment.close()
    await first.supervisor.close()

    second = await make_room(tmp_path)
    assert (await act(second, "list"))["processes"][0]["status"] == "running"
    await act(second, "submit", ident, data="again")
    ended = await act(second, "wait", ident)
    assert (ended["exit_code"], ended["output"]) == (5, "up\ngot again\n")
    await leave(second)


async def test_a_killed_keeper_is_reported_as_an_end_nobody_saw(room: Room) -> None:
    ident = await start(room, "sleep 7203")
    pid = (await act(room, "poll", ident))["pid"]
    child = psutil.Process(pid)
    keeper = child.parent()
    assert keeper is not None
    os.kill(keeper.pid, signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    await asyncio.to_thread(psutil.wait_procs, [child, keeper], 5)
    polled = await act(room, "poll", ident)
    assert (polled["status"], polled["exit_code"]) == ("exited", None)


async def test_the_end_is_told_once_and_not_after_it_was_seen(room: Room) -> None:
    background = background_of(room.environment)
    told_of = await start(room, "echo finished; exit 4", notify_on_complete=True)
    seen = await start(room, "true", notify_on_complete=True)
    await act(room, "wait", seen)
    notices: list[str] = []
    async with asyncio.timeout(10):
        while not notices:
            notices = await background.notices("s1")
            await asyncio.sleep(0.02)
    assert len(notices) == 1
    assert notices[0].startswith(f"[IMPORTANT: background process {told_of} has ended with exit code 4.")
    assert "finished" in notices[0]
    assert await background.notices("s1") == []
    assert await background.notices("another session") == []


async def test_watched_for_output_is_told_with_a_limit(room: Room) -> None:
    background = background_of(room.environment)
    ident = await start(
        room, "echo starting; echo Listening on 80; read x; echo Listening again; read x", watch_patterns=["Listening"]
    )
    notices: list[str] = []
    async with asyncio.timeout(10):
        while not notices:
            notices = await background.notices("s1")
            await asyncio.sleep(0.02)
    assert "Listening on 80" in notices[0]
    assert "starting" not in notices[0].partition("Matching output")[2]
    await act(room, "submit", ident, data="")
    await until(room, ident, "Listening again")
    assert await background.notices("s1") == []


async def test_a_session_that_ends_takes_its_processes_along(room: Room) -> None:
    ident = await start(room, "sleep 7204")
    assert await background_of(room.environment).end_session("another") == 0
    assert await background_of(room.environment).end_session("s1") == 1
    assert (await act(room, "poll", ident))["status"] == "exited"


async def test_a_flood_keeps_a_bounded_log(room: Room, tmp_path: Path) -> None:
    ident = await start(room, "head -c 60000000 /dev/zero | tr '\\0' 'x' | fold -w 100; echo; echo THE END")
    await act(room, "wait", ident)
    files = (tmp_path / "processes" / ident).glob("log*")
    assert sum(file.stat().st_size for file in files) <= 8 << 20
    assert (await act(room, "log", ident, limit=1))["output"] == "THE END"


# -- with a terminal ----------------------------------------------------------------------------------------------


async def test_python_talks_interactively(room: Room) -> None:
    ident = await start(room, "python3 -i -q", pty=True)
    await until(room, ident, ">>>")
    await act(room, "submit", ident, data="import os; os.isatty(0), os.get_terminal_size()")
    log = await until(room, ident, "(True, ")
    assert "columns=120, lines=30" in log
    await act(room, "submit", ident, data="exit(3)")
    assert (await act(room, "wait", ident))["exit_code"] == 3


async def test_a_password_prompt_hides_what_is_typed(room: Room) -> None:
    ident = await start(room, "read -r -s -p 'Password: ' word; echo; echo \"${#word} letters\"", pty=True)
    await until(room, ident, "Password: ")
    await act(room, "submit", ident, data="hunter2")
    log = await until(room, ident, "7 letters")
    assert "hunter2" not in log


async def test_less_and_vim_run_and_quit(room: Room) -> None:
    await terminal({"command": "seq 1 300 > numbers.txt"}, ctx=room)
    less = await start(room, "less numbers.txt", pty=True)
    await until(room, less, "28")
    await act(room, "write", less, data="q")
    assert (await act(room, "wait", less))["exit_code"] == 0
    vim = await start(room, "vi -u NONE -N numbers.txt", pty=True)
    await until(room, vim, "numbers.txt")
    await act(room, "write", vim, data="ihello ")
    await act(room, "write", vim, data="\x1b:wq\r")
    assert (await act(room, "wait", vim))["exit_code"] == 0
    assert (await room.environment.read("numbers.txt"))[:8] == b"hello 1\n"


async def test_end_of_input_in_a_terminal_is_control_d(room: Room) -> None:
    ident = await start(room, "cat; echo ended", pty=True)
    await act(room, "submit", ident, data="line")
    await until(room, ident, "line")
    await act(room, "close", ident)
    assert "ended" in (await act(room, "wait", ident))["output"]


async def test_a_terminal_in_the_foreground_is_answered_with_what_to_do(room: Room) -> None:
    assert "background=true" in told(await terminal({"command": "vim", "pty": True}, ctx=room))["error"]
