"""Ask the person at the terminal before something dangerous is done."""

import threading
from collections.abc import Awaitable, Callable
from typing import Any

from hermes.surfaces.cli.output import Output
from hermes.surfaces.cli.passwords import ask_password
from hermes.tools.approval.terminal_prompt import ask_on, question_text
from hermes.types import Question


class TerminalPrompt:
    """A question of the session, put on stderr and answered on stdin. Silence, Ctrl-C and anything unclear are a no.

    It waits in a thread of its own, in short steps, and reads the descriptor itself: a thread stuck inside `sys.stdin`
    would hang the exit.
    """

    def __init__(self, out: Output, *, timeout_s: float) -> None:
        self._out = out
        self._timeout_s = timeout_s
        self._stopped = threading.Event()

    async def ask(self, question: Question, in_thread: Callable[..., Awaitable[Any]]) -> str | None:
        """What the person said; None is no answer."""
        if question.kind == "sudo":
            return await ask_password(question.text)
        if question.kind not in ("approval", "edit"):
            return None  # a run of one question has no line to type words into
        said: str = await in_thread(self._ask_here, question)
        return said

    def stop(self) -> None:
        """Nobody is going to answer: every question is a no from now on."""
        self._stopped.set()

    def _ask_here(self, question: Question) -> str:
        text = approval_text(question, str(question.details.get("cwd") or ""))
        return ask_on(self._out.stderr, text, question.choices, self._timeout_s, self._stopped.is_set)


def approval_text(question: Question, cwd: str) -> str:
    """A question about a command or an edit; `cwd` is the folder as it is shown."""
    facts = question.details
    return question_text(
        str(facts["command"]),
        str(facts["description"]),
        lines=facts["effects"],
        choices=question.choices,
        heading=f"Hermes wants to use {facts['tool']}{f' in {cwd}' if cwd else ''}:",
    )
