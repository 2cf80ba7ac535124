"""Questions of the gate, put into the same prompt as everything else; one at a time."""

import asyncio
from collections.abc import Callable

from hermes.surfaces.cli.interactive.status import short_path
from hermes.surfaces.cli.interactive.view import Screen
from hermes.tools.approval.question import Answer, ApprovalQuestion
from hermes.tools.approval.queue import answer_of
from hermes.tools.approval.terminal_prompt import question_words

_NO = frozenset({"d", "deny", "n", "no"})
_YES = frozenset({"o", "once", "y", "yes", "t", "task", "s", "session", "a", "always"})


class Questions:
    """The agent's `approval_callback`. A clear yes is a yes, a clear no is a no, and anything else is asked again."""

    def __init__(self, screen: Screen, say: Callable[[str], None], timeout_s: float) -> None:
        self._screen = screen
        self._say = say  # breaks lines where the screen ends
        self._timeout_s = timeout_s
        self._one = asyncio.Lock()  # two calls may ask at once; a person answers one by one
        self._answer: asyncio.Future[Answer] | None = None
        self._choices: tuple[str, ...] = ()

    async def __call__(self, question: ApprovalQuestion) -> Answer:
        async with self._one:
            text = question_words(question, short_path(question.cwd) if question.cwd else "")
            self._answer = asyncio.get_running_loop().create_future()
            self._choices = tuple(question.choices)
            what, _, offered = text.rstrip().rpartition("\n")
            self._screen.write(f"{what}\n")  # to the letter: breaking a line would drop a space of the command
            self._say(offered)
            self._screen.refresh()
            try:
                async with asyncio.timeout(self._timeout_s):
                    return await self._answer
            except TimeoutError:
                self._say("No answer; it was not allowed.")
                return "deny"
            finally:
                self._answer = None
                self._screen.refresh()

    @property
    def is_open(self) -> bool:
        """Whether somebody is asked right now."""
        return self._answer is not None and not self._answer.done()

    def hear(self, said: str) -> bool:
        """What was typed in answer; False when it was neither yes nor no."""
        word = said.strip().lower()
        if self._answer is None or self._answer.done() or word not in _NO | _YES:
            return False
        self._answer.set_result(answer_of(word, self._choices))
        return True

    def deny(self) -> None:
        """No, to whatever is open."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result("deny")
