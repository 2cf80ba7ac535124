"""Ask the person at the terminal before something dangerous is done."""

import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from hermes.surfaces.cli.interactive.answers import chosen
from hermes.surfaces.cli.output import Output
from hermes.surfaces.cli.passwords import ask_password
from hermes.tools.approval.terminal_prompt import ask_on, question_text, read_line
from hermes.tools.approval.visible_text import visible
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
        ask = self._ask_here if question.kind in ("approval", "edit") else self._ask_words
        said: str | None = await in_thread(ask, question)
        return said

    def stop(self) -> None:
        """Nobody is going to answer: every question is a no from now on."""
        self._stopped.set()

    def _ask_words(self, question: Question) -> str | None:
        """What the model wants to know, in the person's own words or by the number of a choice."""
        offered = [f"  {number}. {visible(choice)}" for number, choice in enumerate(question.choices, 1)]
        self._out.stderr.write("\n".join(["", visible(question.text), *offered, "> "]))
        self._out.stderr.flush()
        timeout_s = max(0.0, question.deadline - time.time()) if question.deadline else float("inf")
        typed = (read_line(timeout_s, self._stopped.is_set) or "").strip()
        return chosen(question, typed) or None

    def _ask_here(self, question: Question) -> str:
        text = approval_text(question, str(question.details.get("cwd") or ""))
        return ask_on(self._out.stderr, text, question.choices, self._timeout_s, self._stopped.is_set)


def approval_text(question: Question, cwd: str) -> str:
    """A question about a command or an edit; `cwd` is the folder as it is shown."""
    facts = question.details
    diff = "\n".join(f"  {visible(line)}" for line in str(facts.get("diff") or "").splitlines())
    why = [str(facts["why"])] if facts.get("why") else []
    who = f"The child {visible(str(facts['asked_by']))}" if facts.get("asked_by") else "Hermes"
    return (f"\n{diff}\n" if diff else "") + question_text(
        str(facts.get("for_command") or facts["command"]),
        str(facts["description"]),
        lines=[*why, *facts["effects"]],
        choices=question.choices,
        heading=f"{who} wants to use {facts['tool']}{f' in {cwd}' if cwd else ''}:",
    )
