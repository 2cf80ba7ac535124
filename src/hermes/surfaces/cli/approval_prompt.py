"""Ask the person at the terminal before something dangerous is done."""

import threading

from hermes.surfaces.cli.output import Output
from hermes.tools.approval.question import Answer, ApprovalQuestion
from hermes.tools.approval.terminal_prompt import ask_on, question_words


class TerminalPrompt:
    """The gate's question, put on stderr and answered on stdin. Silence, Ctrl-C and anything but a clear yes are a no.

    It is called in a thread of its own, so it waits in short steps and reads the descriptor itself: a thread stuck
    inside `sys.stdin` would hang the exit.
    """

    def __init__(self, out: Output, *, timeout_s: float) -> None:
        self._out = out
        self._timeout_s = timeout_s
        self._stopped = threading.Event()

    def __call__(self, question: ApprovalQuestion) -> Answer:
        text = question_words(question, question.cwd)
        return ask_on(self._out.stderr, text, question.choices, self._timeout_s, self._stopped.is_set)

    def stop(self) -> None:
        """Nobody is going to answer: every question is a no from now on."""
        self._stopped.set()
