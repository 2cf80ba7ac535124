"""A terminal that is narrow, plain, resized, suspended, closed or cut off: nothing is lost, nothing is left behind."""

import os
import select
import shlex
import signal
import subprocess
import sys
import termios
from pathlib import Path

from hermes.state import SessionDB
from hermes.surfaces.cli.exit_codes import Exit
from hermes.surfaces.cli.output import width_of
from hermes.testing.replies import calls, says
from hermes.testing.server import ServerThread
from tests.surfaces.cli.interactive.conftest import Start
from tests.surfaces.cli.interactive.terminal import CTRL_D, CTRL_U, CTRL_Z, ENTER, WAIT_S, Terminal, answering
from tests.tools.real_backends import SshServer

CJK = "终端里的中文回答需要正确的宽度、每个字占两列、换行也不能把字切开。" * 3
SLOW = says("I talk. " * 2_000).timed(chunk_size=8, chunk_delay_s=0.02)


def test_sixty_columns_with_wide_characters(start: Start) -> None:
    script = answering({"说": [calls("terminal", command=f"echo {CJK}"), says(f"# 标题\n\n{CJK}\n\n- 一\n- 二")]})
    with ServerThread(script) as server, start(server, columns=60) as screen:
        screen.wait_for("Ask something")
        screen.type(f"说点什么吧{ENTER}")
        screen.wait_for("• 二", "scripted · ")
        screen.type("中文输入")
        screen.wait_for("> 中文输入")
        screen.capture("narrow")
        flat = screen.text.replace(" ", "").replace("\n", "")
        assert CJK in flat
        assert all(width_of(line.replace(" ", "")) <= 60 for line in screen.lines)
        screen.type(CTRL_U + CTRL_D)
        assert screen.ended() == 0
        assert "Traceback" not in screen.text


def test_no_colour_is_no_colour(start: Start) -> None:
    script = answering({"Go": [calls("terminal", command="false"), says("**Bold** and\n\n```python\nx = 1\n```")]})
    with ServerThread(script) as server, start(server, NO_COLOR="1") as screen:
        screen.wait_for("Ask something")
        screen.type(f"Go{ENTER}")
        screen.wait_for("Bold and", "x = 1", "✗ terminal false", "exit code 1")
        screen.type(CTRL_D)
        assert screen.ended() == 0
    for colour in range(30, 50):
        assert f"\x1b[{colour}m".encode() not in screen.raw
    assert b"38;5" not in screen.raw
    assert b"38;2" not in screen.raw


def test_dumb_terminal_gets_lines_and_can_approve(start: Start, project: Path) -> None:
    (project / "gone").mkdir()
    script = answering({"Remove": [calls("terminal", command="rm -rf gone"), says("It is **removed**.")]})
    with ServerThread(script) as server, start(server, TERM="dumb") as screen:
        screen.wait_for("Ask something")
        screen.type("Remove it.\n")
        screen.wait_for("Allow it?")
        screen.type("o\n")
        screen.wait_for("It is removed.")
        screen.type("/busy\n")
        screen.wait_for("waits for its end")
        screen.type(CTRL_D)
        assert screen.ended() == 0
    assert b"\x1b" not in screen.raw
    assert not (project / "gone").exists()


def test_stdout_that_is_no_terminal_gets_plain_lines(environ: dict[str, str], project: Path, tmp_path: Path) -> None:
    with ServerThread(answering({})) as server:
        command = f"{sys.executable} -m hermes.surfaces.cli.main --model scripted --base-url {server.base_url}"
        shell = Terminal(["sh", "-c", f"{command} | tee {tmp_path}/kept"], {**environ, "TERM": "xterm"}, project)
        try:
            shell.wait_for("Ask something")
            shell.type("Hello\n")
            shell.wait_for("I was asked: Hello")
            shell.type(CTRL_D)
            assert shell.ended() == 0
        finally:
            shell.close()
    assert "\x1b" not in (tmp_path / "kept").read_text()


def test_resized_while_it_draws(start: Start) -> None:
    script = answering({"Talk": [says("I talk. " * 200).timed(chunk_size=8, chunk_delay_s=0.02)]})
    with ServerThread(script) as server, start(server, columns=100) as screen:
        screen.wait_for("Ask something")
        screen.type(f"Talk.{ENTER}")
        screen.wait_for("I talk.")
        for columns in (60, 120, 70):
            screen.resize(columns)
            screen.type("x")
            screen.wait_for("x" * (1 + (60, 120, 70).index(columns)))
        screen.wait_for("tokens read")
        screen.wait_until(lambda: any(line.startswith("> xxx") for line in screen.lines), "what was typed")
        assert sum(line.startswith("> xxx") for line in screen.lines) == 1, screen.text
        screen.type(CTRL_U + CTRL_D)
        assert screen.ended() == 0


def test_suspended_and_resumed(environ: dict[str, str], project: Path) -> None:
    with ServerThread(answering({})) as server:
        shell = Terminal(["bash", "--norc", "-i"], {**environ, "TERM": "xterm", "PS1": "shell> "}, project)
        try:
            shell.wait_for("shell>")
            words = f"--model scripted --base-url {server.base_url}"
            shell.type(f"{sys.executable} -m hermes.surfaces.cli.main {words}\n")
            shell.wait_for("Ask something", "scripted · ")
            shell.type("half a")
            shell.wait_for("> half a")
            shell.type(CTRL_Z)
            shell.wait_for("Stopped")
            shell.type("echo the shell is $((40 + 2))\n")
            shell.wait_for("the shell is 42")
            shell.type("fg\n")
            shell.wait_until(
                lambda: shell.lines[-1:] != [] and "> half a" in shell.text.split("is 42")[-1], "the prompt"
            )
            shell.type(f" word{ENTER}")
            shell.wait_for("I was asked: half a word")
            shell.type(CTRL_D)
            shell.wait_for("Go on with: hermes --resume")
            shell.type("exit\n")
            shell.ended()
        finally:
            shell.close()


def test_window_closed_during_a_turn_leaves_a_resumable_session(start: Start, home: Path) -> None:
    with ServerThread(answering({"Talk": [SLOW]})) as server:
        with start(server) as screen:
            screen.wait_for("Ask something")
            screen.type(f"Talk.{ENTER}")
            screen.wait_for("I talk.")
            screen.type(f"later{ENTER}")
            screen.wait_for("waiting 1: later")
            screen.hang_up()
            assert screen.process.wait(timeout=40) in (Exit.CANCELLED, Exit.ANSWERED)
        with start(server, "--continue") as screen:
            screen.wait_for("> Talk.", "waiting 1: later")
    with SessionDB(home / "state.db") as db:
        assert db.session_count() == 1


def test_a_hang_up_alone_ends_it_and_the_terminal_is_as_it_was(start: Start) -> None:
    with ServerThread(answering({"Talk": [SLOW]})) as server, start(server) as screen:
        before = termios.tcgetattr(screen._master)[3]
        screen.wait_for("Ask something")
        screen.type(f"Talk.{ENTER}")
        screen.wait_for("I talk.")
        os.kill(screen.process.pid, signal.SIGHUP)
        assert screen.ended() == Exit.CANCELLED
        assert termios.tcgetattr(screen._master)[3] == before
        assert "Go on with: hermes --resume" in screen.text


def test_a_dropped_ssh_leaves_a_resumable_session_and_no_process(
    sshd: SshServer, environ: dict[str, str], start: Start, project: Path
) -> None:
    with ServerThread(answering({"Talk": [SLOW]})) as server:
        settings = [f"{name}={value}" for name, value in environ.items()]
        words = ["-m", "hermes.surfaces.cli.main", "--model", "scripted", "--base-url", server.base_url]
        there = shlex.join(["env", *settings, "TERM=xterm", sys.executable, *words])
        options = ["-tt", "-p", str(sshd.port), "-i", str(sshd.folder / "key"), "-o", "StrictHostKeyChecking=no"]
        known = ["-o", f"UserKnownHostsFile={project}/known", "-o", "LogLevel=ERROR", "root@127.0.0.1"]
        line = f"cd {shlex.quote(str(project))}; echo $$ > pid; exec {there}"
        client = Terminal(["ssh", *options, *known, line], {**os.environ, "TERM": "xterm"}, project)
        try:
            client.wait_for("Ask something")
            client.type(f"Talk.{ENTER}")
            client.wait_for("I talk.")
            client.type(f"later{ENTER}")
            client.wait_for("waiting 1: later")
            gone = os.pidfd_open(int((project / "pid").read_text()))
        finally:
            client.close()  # as a lost network: the client is killed without a word
        try:
            assert select.select([gone], [], [], WAIT_S)[0], "it still runs"
        finally:
            os.close(gone)
        with start(server, "--continue") as screen:
            screen.wait_for("> Talk.", "waiting 1: later")


def test_terminated_from_outside_the_terminal_is_as_it_was(start: Start) -> None:
    with ServerThread(answering({"Talk": [SLOW]})) as server, start(server) as screen:
        before = termios.tcgetattr(screen._master)[3]
        screen.wait_for("Ask something")
        screen.type(f"Talk.{ENTER}")
        screen.wait_for("I talk.")
        os.kill(screen.process.pid, signal.SIGTERM)
        assert screen.ended() == Exit.CANCELLED
        assert termios.tcgetattr(screen._master)[3] == before
        assert "scripted · " not in screen.text
        assert "Go on with: hermes --resume" in screen.text
        assert screen.raw.rfind(b"\x1b[?2004l") > screen.raw.rfind(b"\x1b[?2004h")


def test_reader_of_stdout_that_goes_away_ends_it(environ: dict[str, str], project: Path) -> None:
    paragraphs = says("I talk.\n\n" * 2_000).timed(chunk_size=9, chunk_delay_s=0.02)
    with ServerThread(answering({"Talk": [paragraphs]})) as server:
        command = f"{sys.executable} -m hermes.surfaces.cli.main --model scripted --base-url {server.base_url}"
        shell = Terminal(["bash", "-c", f"{command} | head -n 1; echo over"], {**environ, "TERM": "xterm"}, project)
        try:
            shell.wait_for("Ask something")
            shell.type("Talk.\n")
            shell.wait_for("over")
            shell.ended()
        finally:
            shell.close()


def test_a_pipe_still_gets_the_plain_answer(environ: dict[str, str], project: Path) -> None:
    with ServerThread(answering({})) as server:
        done = subprocess.run(
            [sys.executable, "-m", "hermes.surfaces.cli.main", "--model", "scripted", "--base-url", server.base_url],
            input="Hello",
            env=environ,
            cwd=project,
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert (done.stdout, done.returncode) == ("I was asked: Hello\n", 0)
