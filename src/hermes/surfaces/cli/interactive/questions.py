"""Questions of the session, put into the same prompt as everything else; one at a time."""

from collections.abc import Callable

from hermes.host.conversation import Conversation
from hermes.host.host_errors import NothingPending, RequestRefused
from hermes.surfaces.cli.approval_prompt import approval_text, chosen
from hermes.surfaces.cli.interactive.status import short_path
from hermes.surfaces.cli.interactive.view import Screen
from hermes.surfaces.cli.passwords import ask_password
from hermes.tools.approval.question import visible
from hermes.types import Question

WHO = "terminal"
_NO = frozenset({"d", "deny", "n", "no"})
_YES = frozenset({"o", "once", "y", "yes", "t", "task", "s", "session", "a", "always"})


class Questions:
    """What is asked on the screen. A clear yes is a yes, a clear no is a no, and anything else is asked again."""

    def __init__(self, screen: Screen, say: Callable[..., None], live: Callable[[], Conversation]) -> None:
        self._screen = screen
        self._say = say  # breaks lines where the screen ends
        self._live = live
        self._shown: Question | None = None

    def refresh(self) -> None:
        """Show the oldest question that is open, if it is not on the screen already."""
        oldest = next(iter(self._live().questions.open_ones), None)
        if oldest is not None and (self._shown is None or self._shown.id != oldest.id):
            self._show(oldest)
        self._shown = oldest
        self._screen.refresh()

    def answered(self, question_id: str, by: str) -> None:
        """Somebody has answered, or the time is over."""
        if by == "deadline":
            is_clarify = self._shown is not None and self._shown.kind == "clarify"
            self._say("No answer; it goes on without one." if is_clarify else "No answer; it was not allowed.")
        elif by != WHO and self._shown is not None and self._shown.id == question_id and by != "interrupt":
            self._say(f"Answered by {by}.")
        self.refresh()

    @property
    def is_open(self) -> bool:
        """Whether something is asked right now that is answered in the input line."""
        return self._shown is not None and self._shown.kind != "sudo"

    @property
    def choices(self) -> tuple[str, ...]:
        """Answers that can be chosen with the arrows: those of a question of the model."""
        return self._shown.choices if self._shown is not None and self._shown.kind == "clarify" else ()

    def hear(self, said: str) -> bool:
        """What was typed in answer; False when it was neither yes nor no."""
        question = self._shown
        if question is None:
            return False
        word = said.strip()
        if question.kind in ("approval", "edit"):
            word = word.lower()
            if word not in _NO | _YES:
                return False
        else:
            word = chosen(question, word)
            if not word:
                return False
        self._answer(question, word)
        return True

    def deny(self) -> None:
        """No, to whatever is on the screen."""
        if self._shown is not None:
            self._answer(self._shown, None)

    def _answer(self, question: Question, said: str | None) -> None:
        try:
            self._live().answer(question.id, said, WHO)
        except NothingPending:
            self._say("This was answered already.")
        except RequestRefused as error:
            self._say(str(error))
        self.refresh()

    def _show(self, question: Question) -> None:
        if question.kind == "sudo":
            self._live().later(self._password(question), "a password")
            return
        if question.kind not in ("approval", "edit"):
            self._say(visible(question.text), "bold")
            for number, choice in enumerate(question.choices, 1):
                self._say(f"  {number}. {visible(choice)}")
            if question.choices:
                self._say("  Other: type it. A number or the arrows choose; Esc leaves it to the model.")
            return
        cwd = str(question.details.get("cwd") or "")
        text = approval_text(question, short_path(cwd) if cwd else "")
        what, _, offered = text.rstrip().rpartition("\n")
        self._screen.write(f"{what}\n")  # to the letter: breaking a line would drop a space of the command
        self._say(offered)

    async def _password(self, question: Question) -> None:
        self._answer(question, await ask_password(question.text))
