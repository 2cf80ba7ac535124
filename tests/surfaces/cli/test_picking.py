"""`hermes sessions` in a real terminal: keys are typed and the screen is read."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.state import SessionDB
from hermes.surfaces.cli.exit_codes import Exit
from hermes.surfaces.cli.session_picker import Picker
from hermes.testing.server import ServerThread
from hermes.tools.results.tool_result import fence

ONE, TWO = "20260101_000000_aaaaaa", "20260102_000000_bbbbbb"
LIMIT_S = 40


class Terminal:
    """A program in a terminal of 24 rows and 80 columns."""

    def __init__(self, words: list[str], env: dict[str, str], cwd: Path) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.process = subprocess.Popen(
            words, env=env, cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)
        self.shown = ""
        self._seen = 0  # up to here it was waited for

    def wait_for(self, text: str) -> None:
        """Read until `text` was shown after what was waited for before."""
        deadline = time.monotonic() + LIMIT_S
        while (place := self.shown.find(text, self._seen)) < 0:
            assert self._read(deadline), f"{text!r} was not shown; this was: {self.shown[self._seen :]!r}"
        self._seen = place + len(text)

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def end(self) -> int:
        """Read to the end; the exit code."""
        deadline = time.monotonic() + LIMIT_S
        while self._read(deadline):
            continue
        return self.process.wait(timeout=LIMIT_S)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)

    def _read(self, deadline: float) -> bool:
        if not select.select([self._ours], [], [], max(0.0, deadline - time.monotonic()))[0]:
            return False
        try:
            chunk = os.read(self._ours, 65_536)
        except OSError:  # how Linux says that the program has closed it
            return False
        if b"\x1b[6n" in chunk:
            os.write(self._ours, b"\x1b[1;1R")  # a terminal says where its cursor is when asked
        self.shown += chunk.decode(errors="replace")
        return bool(chunk)


@pytest.fixture
def terminal(environ: dict[str, str], home: Path, tmp_path: Path) -> Iterator[Terminal]:
    with SessionDB(home / "state.db") as db:
        for session, question in ((ONE, "How do I bake bread?"), (TWO, "What is a quark?")):
            db.create_session(session, "cli", model="scripted")
            db.append_message(session, "user", question)
            db.append_message(session, "assistant", f"An answer to: {question}")
    with ServerThread([]) as server:
        (home / "config.yaml").write_text(f"model: {{default: scripted, base_url: '{server.base_url}'}}\n")
        made = Terminal(
            [sys.executable, "-m", "hermes.surfaces.cli.main", "sessions"],
            {**environ, "TERM": "xterm-256color"},
            tmp_path,
        )
        try:
            yield made
        finally:
            made.close()


def test_leaving_the_picker_takes_nothing_and_cleans_the_screen(terminal: Terminal) -> None:
    terminal.wait_for("type to search")
    terminal.wait_for("quark")
    terminal.type("\x03")
    assert terminal.end() == Exit.CANCELLED
    assert "\x1b[?1049l" in terminal.shown  # back from the screen of its own


def test_the_picked_session_goes_on(terminal: Terminal) -> None:
    terminal.wait_for("An answer to: What is a quark?")  # how the newest began
    terminal.type("bread")
    terminal.wait_for("How do I bake bread?")
    terminal.type("\r")
    terminal.wait_for("\x1b[?1049l")
    terminal.wait_for("An answer to: How do I bake bread?")  # the conversation shows its past
    terminal.type("\x04")
    assert terminal.end() == 0
    assert f"--resume {ONE}" in terminal.shown


def test_the_preview_shows_results_and_calls_in_plain_words(tmp_path: Path) -> None:
    with SessionDB(tmp_path / "state.db") as db:
        db.create_session(ONE, "cli")
        db.append_message(ONE, "user", "What does the page say?")
        call = {
            "id": "1",
            "type": "function",
            "function": {"name": "web_extract", "arguments": '{"url": "http://a.example"}'},
        }
        db.append_message(ONE, "assistant", "", tool_calls=[call])
        page = fence('{"content": "Bread is baked from flour and water."}', "web_extract", "web")
        db.append_message(ONE, "tool", page, tool_name="web_extract", tool_call_id="1")
        preview = Picker(db, [{"id": ONE}]).preview(80)

    assert preview.splitlines() == [
        "you: What does the page say?",
        "  → web_extract http://a.example",
        "web_extract: Bread is baked from flour and water.",
    ]
