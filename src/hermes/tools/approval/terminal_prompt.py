"""A question in a terminal: written whole, answered with a letter; silence is a no."""

import os
import select
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TextIO

from hermes.scope import TurnScope
from hermes.tools.approval.gate import Ask, NobodyHere
from hermes.tools.approval.question import Answer, ApprovalQuestion
from hermes.tools.approval.queue import answer_of
from hermes.tools.approval.visible_text import shown_command, visible

POLL_S = 0.1
_OFFERED = {
    "once": "[o]nce",
    "task": "this [t]ask",
    "session": "this [s]ession",
    "always": "[a]lways",
    "deny": "[D]eny",
}
_one_question = threading.Lock()  # guards the terminal: a yes to one question must not be read as one to another


def ask_in_terminal(command: str, description: str, choices: Sequence[str], timeout_s: float) -> Answer:
    """Ask on stderr and read from stdin, when both are a terminal; else the answer is no."""
    if not _has_terminal():
        return "deny"
    return ask_on(sys.stderr, question_text(command, description, choices=choices), choices, timeout_s)


def terminal_ask(in_thread: Callable[..., Awaitable[Answer]], timeout_s: float) -> Ask:
    """An `Ask` in the terminal, which waits in a thread; without a terminal there is nobody."""

    async def ask(question: ApprovalQuestion, _scope: TurnScope) -> Answer:
        if not _has_terminal():
            raise NobodyHere
        over = threading.Event()
        try:
            text = question_words(question, question.cwd)
            return await in_thread(ask_on, sys.stderr, text, question.choices, timeout_s, over.is_set)
        finally:
            over.set()  # a thread that nobody waits for must not read what is typed next

    return ask


def _has_terminal() -> bool:
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def question_text(
    command: str, description: str, *, lines: Sequence[str] = (), choices: Sequence[str], heading: str = ""
) -> str:
    """The whole question. Nothing in it can move the cursor, hide or reorder what is read."""
    effects = "".join(f"  • {visible(line)}\n" for line in (lines or (description,)) if line)
    offered = ", ".join(_OFFERED[choice] for choice in choices if choice in _OFFERED)
    head = visible(heading) or "This needs your approval:"
    return f"\n{head}\n\n{shown_command(command)}\n\n{effects}Allow it? {offered}: "


def question_words(question: ApprovalQuestion, cwd: str) -> str:
    """The same for a question of the gate; `cwd` is the folder as it is shown."""
    return question_text(
        question.command,
        question.description,
        lines=question.lines,
        choices=question.choices,
        heading=f"Hermes wants to use {question.tool}{f' in {cwd}' if cwd else ''}:",
    )


def ask_on(
    screen: TextIO,
    text: str,
    choices: Sequence[str],
    timeout_s: float,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Answer:
    """Write the question and wait for a line on stdin, in short steps, so that nothing is stuck when it is over."""
    with _one_question:
        if is_stopped():
            return "deny"
        discard_typed()
        screen.write(text)
        screen.flush()
        typed = read_line(timeout_s, is_stopped)
        if typed is None:
            screen.write("\nNo answer; it was not allowed.\n")
            screen.flush()
            return "deny"
        return answer_of(typed, tuple(choices))


def discard_typed() -> None:
    """Forget what was typed before the question was on the screen: it was not meant for it."""
    try:
        import termios  # not on every system

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    except (ImportError, OSError, ValueError):
        return


def read_line(timeout_s: float, is_stopped: Callable[[], bool] = lambda: False) -> str | None:
    """What is typed up to the end of a line, or None when nothing was in time."""
    number = sys.stdin.fileno()
    deadline = time.monotonic() + timeout_s
    typed = b""
    while time.monotonic() < deadline and not is_stopped():
        if not select.select([number], [], [], POLL_S)[0]:
            continue
        chunk = os.read(number, 1024)
        typed += chunk
        if not chunk or b"\n" in chunk:
            return typed.decode("utf-8", "replace") if typed else None
    return None
