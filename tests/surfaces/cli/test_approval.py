"""The question before a command, in a real terminal: yes runs it, anything else does not."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes.surfaces.cli.exit_codes import Exit
from hermes.testing.replies import calls, says
from hermes.testing.server import ScriptedServer, ServerThread

COMMAND = "rm -rf gone && touch made"


class Terminal:
    """A process with a terminal of its own; what it wrote is in `screen`."""

    def __init__(self, process: "subprocess.Popen[bytes]", master: int) -> None:
        self.process = process
        self._master = master
        self.screen = ""

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + 40
        while text not in self.screen:
            assert time.monotonic() < deadline, self.screen
            if not self.read():
                assert text in self.screen, self.screen

    def read(self) -> bool:
        if not select.select([self._master], [], [], 1)[0]:
            return self.process.poll() is None
        try:
            self.screen += os.read(self._master, 4096).decode("utf-8", "replace")
        except OSError:  # the other end is closed
            return False
        return True

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def ended(self) -> int:
        while self.read():
            continue
        return self.process.wait(timeout=30)


@contextmanager
def chatting(server: ScriptedServer, environ: dict[str, str], cwd: Path) -> Iterator[Terminal]:
    (cwd / "gone").mkdir(exist_ok=True)  # what is not there is no loss, and nobody would be asked
    master, slave = pty.openpty()
    words = ["chat", "-q", "Do it.", "--model", "scripted", "--base-url", server.base_url]
    process = subprocess.Popen(
        [sys.executable, "-m", "hermes.surfaces.cli.main", *words],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**environ, "TERM": "xterm"},
        cwd=cwd,
        start_new_session=True,
    )
    os.close(slave)
    try:
        yield Terminal(process, master)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(master)


@pytest.mark.parametrize(
    ("typed", "is_made", "said"), [("y\r", True, "Done."), ("n\r", False, "Not done."), ("\r", False, "Not done.")]
)
def test_only_yes_runs_the_command(
    environ: dict[str, str], tmp_path: Path, typed: str, is_made: bool, said: str
) -> None:
    with (
        ServerThread([calls("terminal", command=COMMAND), says(said)]) as server,
        chatting(server, environ, tmp_path) as terminal,
    ):
        terminal.wait_for("[D]eny:")
        assert COMMAND in terminal.screen
        terminal.type(typed)
        terminal.wait_for(said)
        assert terminal.ended() == 0
    assert (tmp_path / "made").exists() == is_made


def test_control_c_at_the_question_runs_nothing_and_ends_the_turn(environ: dict[str, str], tmp_path: Path) -> None:
    with (
        ServerThread([calls("terminal", command=COMMAND)]) as server,
        chatting(server, environ, tmp_path) as terminal,
    ):
        terminal.wait_for("[D]eny:")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.ended() == Exit.CANCELLED
    assert not (tmp_path / "made").exists()
    assert "Traceback" not in terminal.screen


def test_the_question_of_a_child_has_its_name(environ: dict[str, str], tmp_path: Path) -> None:
    lines = [calls("delegate_task", goal="Tidy up."), calls("terminal", command=COMMAND), says("Tidy."), says("Done.")]
    with ServerThread(lines) as server, chatting(server, environ, tmp_path) as terminal:
        terminal.wait_for("[D]eny:")
        assert ": Tidy up. wants to use terminal" in terminal.screen
        assert "The child sa-0-" in terminal.screen
        terminal.type("y\r")
        terminal.wait_for("Done.")
        assert terminal.ended() == 0
    assert (tmp_path / "made").exists()


def test_silence_is_a_no(environ: dict[str, str], home: Path, tmp_path: Path) -> None:
    (home / "config.yaml").write_text("approvals: {timeout: 0.3}\n")
    with (
        ServerThread([calls("terminal", command=COMMAND), says("Not done.")]) as server,
        chatting(server, environ, tmp_path) as terminal,
    ):
        terminal.wait_for("No answer; it was not allowed.")
        assert terminal.ended() == 0
    assert not (tmp_path / "made").exists()
