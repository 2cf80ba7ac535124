"""A real `hermes` in a terminal of its own: keys are typed, and the screen is read as a person sees it."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyte

from hermes.testing.replies import Reply, says
from hermes.testing.server import RecordedRequest

SCREENS = Path(__file__).parents[4] / "docs" / "screens"
WAIT_S = 40.0
ENTER, ESC, UP, DOWN, TAB = "\r", "\x1b", "\x1b[A", "\x1b[B", "\t"
CTRL_C, CTRL_D, CTRL_U, CTRL_Z = "\x03", "\x04", "\x15", "\x1a"


class Terminal:
    """A process and the screen it draws on. `scrolled` holds what has left the screen at its top."""

    def __init__(self, words: list[str], environ: Mapping[str, str], cwd: Path, columns: int = 80) -> None:
        self._master, slave = pty.openpty()
        self.rows, self.columns = 30, columns
        self._tell_size()
        self._screen = pyte.HistoryScreen(columns, self.rows, history=5_000, ratio=0.001)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = b""
        self.process = subprocess.Popen(
            words,
            env=dict(environ),
            cwd=cwd,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - one call, no lock
        )
        os.close(slave)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def resize(self, columns: int) -> None:
        self.columns = columns
        self._screen.resize(self.rows, columns)
        self._tell_size()

    def hang_up(self) -> None:
        """Close the window."""
        os.close(self._master)
        self._master = -1

    @property
    def lines(self) -> list[str]:
        """What is on the screen, and before it what has scrolled away."""
        past = ["".join(line[column].data for column in range(self.columns)) for line in self._screen.history.top]
        return [line.rstrip() for line in [*past, *self._screen.display]]

    @property
    def text(self) -> str:
        return "\n".join(self.lines).rstrip()

    def wait_for(self, *wanted: str) -> None:
        """Until all of these are on the screen."""
        self.wait_until(lambda: all(each in self.text for each in wanted), f"{wanted!r}")

    def wait_gone(self, unwanted: str) -> None:
        self.wait_until(lambda: unwanted not in self.text, f"no {unwanted!r}")

    def wait_until(self, is_true: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + WAIT_S
        while not is_true():
            assert time.monotonic() < deadline, f"waited for {what}, and there is:\n{self.text}"
            if not self._read() and not is_true():
                raise AssertionError(f"it ended before {what}:\n{self.text}")

    def ended(self) -> int:
        """The exit code, once the process is gone and its last words are read."""
        deadline = time.monotonic() + WAIT_S
        while self._master >= 0 and self._read():
            assert time.monotonic() < deadline, f"it does not end:\n{self.text}"
        return self.process.wait(timeout=WAIT_S)

    def capture(self, name: str) -> None:
        """Keep the screen for the documentation, when that is asked for."""
        if os.environ.get("HERMES_WRITE_SCREENS"):
            SCREENS.mkdir(exist_ok=True)
            (SCREENS / f"{name}.txt").write_text("\n".join(self.lines).strip("\n") + "\n", encoding="utf-8")

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(timeout=WAIT_S)
        if self._master >= 0:
            os.close(self._master)

    def _read(self) -> bool:
        if not select.select([self._master], [], [], 0.2)[0]:
            return self.process.poll() is None
        try:
            data = os.read(self._master, 65_536)
        except OSError:  # the other end is closed
            return False
        self.raw += data
        self._stream.feed(data)
        return bool(data)

    def _tell_size(self) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", self.rows, self.columns, 0, 0))


@contextmanager
def hermes(*words: str, environ: Mapping[str, str], cwd: Path, columns: int = 80) -> Iterator[Terminal]:
    """`hermes WORDS` in a terminal; it is gone when the block is left."""
    terminal = Terminal([sys.executable, "-m", "hermes.surfaces.cli.main", *words], environ, cwd, columns)
    try:
        yield terminal
    finally:
        terminal.close()


def answering(turns: Mapping[str, list[Reply]]) -> Callable[[RecordedRequest], Reply]:
    """A script by what is asked: the replies to a message, in order; titles are asked for beside it."""

    def reply(request: RecordedRequest) -> Reply:
        body: Any = request.json
        messages = body["messages"]
        if "Give a title" in str(messages[0]["content"]):
            return says("A title")
        place = max(number for number, message in enumerate(messages) if message["role"] == "user")
        asked = str(messages[place]["content"])
        done = sum(message["role"] == "assistant" for message in messages[place:])
        fitting = next((replies for words, replies in turns.items() if words in asked), None)
        return fitting[min(done, len(fitting) - 1)] if fitting else says(f"I was asked: {asked[:60]}")

    return reply
