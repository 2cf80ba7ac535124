"""Questions of the session, put into the same prompt as everything else; one at a time."""

from collections.abc import Callable

from hermes.host.conversation import Conversation
from hermes.host.events import TERMINAL
from hermes.host.host_errors import NothingPending, RequestRefused
from hermes.surfaces.cli.interactive.answers import TELL, AnswerList, chosen
from hermes.surfaces.cli.interactive.markup import Painter, hanging
from hermes.surfaces.cli.interactive.question_view import answered_row, is_plain_edit, question_rows
from hermes.surfaces.cli.interactive.view import Screen
from hermes.surfaces.cli.passwords import ask_password
from hermes.tools.approval.visible_text import visible
from hermes.types import Question

_NO = frozenset({"d", "deny", "n", "no"})
_YES = frozenset({"o", "once", "y", "yes", "t", "task", "s", "session", "a", "always"})


class Questions:
    """What is asked on the screen. A clear yes is a yes, a clear no is a no, and anything else is asked again."""

    def __init__(
        self,
        screen: Screen,
        say: Callable[..., None],
        live: Callable[[], Conversation],
        painter: Painter,
        *,
        lists: bool = True,
    ) -> None:
        self._screen = screen
        self._painter = painter
        self._lists = lists  # the answers are drawn as a list that keys move in
        self.answers: AnswerList | None = None  # to the approval that is asked
        self._asked: dict[str, Question] = {}
        self._say = say  # breaks lines where the screen ends
        self._live = live
        self._shown: Question | None = None

    def refresh(self) -> None:
        """Show the oldest question that is open, if it is not on the screen already."""
        oldest = next(iter(self._live().questions.open_ones), None)
        if oldest is not None and (self._shown is None or self._shown.id != oldest.id):
            self.answers = None
            self._asked[oldest.id] = oldest
            self._show(oldest)
        self._shown = oldest
        if oldest is None:
            self.answers = None
        self._screen.refresh()

    def answered(self, question_id: str, answer: str, by: str) -> None:
        """Somebody has answered, or the time is over; what was said stays on the screen."""
        question = self._asked.pop(question_id, None)
        if question is not None and question.kind in ("approval", "edit"):
            self._screen.write(answered_row(question, answer, by, self._painter))
        elif by == "deadline":
            self._say("No answer; it goes on without one.")
        if question is not None and by not in (TERMINAL, "deadline", "interrupt"):
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
            word = self._meant(word)
            if not word:
                return False
        else:
            word = chosen(question, word)
            if not word:
                return False
        self._answer(question, word)
        return True

    def press(self, digit: str) -> bool:
        """Answer with the number of an entry, at once; False when there is none of that number."""
        if self._shown is None or self.answers is None or not (word := self.answers.numbered(digit)):
            return False
        if word == TELL:
            self.answers.chosen = len(self.answers.choices) - 1
            self._screen.refresh()
        else:
            self._answer(self._shown, word)
        return True

    def _meant(self, typed: str) -> str:
        """The answer that was typed, or chosen with the arrows; empty when it is not clear."""
        chosen_word = self.answers.choices[self.answers.chosen] if self.answers is not None else "deny"
        if typed.lower() in _NO | _YES:
            return typed.lower()
        if typed and chosen_word == TELL:
            self._live().steer(typed)  # it reads that beside the refusal
            self._say(f"steering: {typed}", "dim")
            return "deny"
        return "" if typed or chosen_word == TELL else chosen_word

    def deny(self) -> None:
        """No, to whatever is on the screen."""
        if self._shown is not None:
            self._answer(self._shown, None)

    def _answer(self, question: Question, said: str | None) -> None:
        try:
            self._live().answer(question.id, said, TERMINAL)
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
                self._say("\n".join(hanging(f"  {number}. ", visible(choice), self._painter.width)))
            if question.choices:
                self._say("  Other: type it. A number or the arrows choose; Esc leaves it to the model.")
            return
        self._screen.write(question_rows(question, self._painter))
        self.answers = AnswerList.of(question.choices, is_edit=is_plain_edit(question))
        if not self._lists:
            self._say(f"Allow it? {', '.join(self.answers.labels[:-1])}")  # words beside a no need the list

    async def _password(self, question: Question) -> None:
        self._answer(question, await ask_password(question.text))
