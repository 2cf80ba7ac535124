"""Ask the person at the terminal before something with an effect is done."""

import os
import select
import sys
import threading
import time

from hermes.seams import Action
from hermes.surfaces.cli.output import Output

POLL_S = 0.1
YES = ("y", "yes")


class TerminalApproval:
    """The kernel's question, put on stderr and answered on stdin. Silence, Ctrl-C and anything but yes are a no.

    It is called in a thread of its own, so it waits in short steps and reads the descriptor itself: a thread stuck
    inside `sys.stdin` would hang the exit.
    """

    def __init__(self, out: Output, *, timeout_s: float) -> None:
        self._out = out
        self._timeout_s = timeout_s
        self._stopped = threading.Event()
        self._one_question = threading.Lock()  # two tools may ask at once; a person answers one by one

    def __call__(self, action: Action) -> bool:
        with self._one_question:
            if self._stopped.is_set():
                return False
            return self._ask(action)

    def stop(self) -> None:
        """Nobody is going to answer: every question is a no from now on."""
        self._stopped.set()

    def _ask(self, action: Action) -> bool:
        where = f" in {action.cwd}" if action.cwd else ""
        self._out.note(f"\nHermes wants to use {action.tool}{where}:\n\n{_shown(action.text)}\n")
        self._out.stderr.write("Allow it? [y/N] ")
        self._out.stderr.flush()
        said = self._line()
        if said is None:
            self._out.note("\nNo answer; it was not allowed.")
        return said is not None and said.strip().lower() in YES

    def _line(self) -> str | None:
        """What is typed, or None when nothing was in time."""
        number = sys.stdin.fileno()
        deadline = time.monotonic() + self._timeout_s
        typed = b""
        while time.monotonic() < deadline and not self._stopped.is_set():
            if not select.select([number], [], [], POLL_S)[0]:
                continue
            chunk = os.read(number, 1024)
            typed += chunk
            if not chunk or b"\n" in chunk:
                return typed.decode("utf-8", "replace") if typed else None
        return None


def _shown(text: str) -> str:
    """`text` indented, with what could hide from the reader made visible."""
    visible = "".join(char if char.isprintable() or char in "\n\t" else f"\\x{ord(char):02x}" for char in text)
    return "\n".join(f"    {line}" for line in visible.splitlines())
