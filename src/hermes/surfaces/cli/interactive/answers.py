"""The answers to an approval as a list: what each is called, and which one is chosen."""

from collections.abc import Sequence
from dataclasses import dataclass

from hermes.surfaces.cli.interactive.markup import hanging
from hermes.surfaces.cli.output import cut
from hermes.types import Question

TELL = "tell"
# A letter alone does not answer: words that somebody was about to type begin with one, too.
HINT = "a number: at once · a letter or arrows: Enter · Esc: no"
_WORDS = {
    "once": "yes, once",
    "task": "yes, this very thing for the rest of this task",
    "session": "yes, and do not ask about it again in this session",
    "always": "yes, always: it is written down",
    "deny": "no",
}
_EDIT_WORDS = {**_WORDS, "session": "yes, and all further edits (edits on)"}


def chosen(question: Question, typed: str) -> str:
    """What was typed in answer; a number stands for the choice of that number."""
    is_number = typed.isdecimal() and 1 <= int(typed) <= len(question.choices)
    return question.choices[int(typed) - 1] if is_number else typed


@dataclass(slots=True)
class AnswerList:
    """Answers in the order of their numbers. At first *no* is chosen: only a clear yes is one."""

    choices: tuple[str, ...]
    labels: tuple[str, ...]
    chosen: int

    @classmethod
    def of(cls, choices: Sequence[str], *, is_edit: bool) -> "AnswerList":
        words = _EDIT_WORDS if is_edit else _WORDS
        known = tuple(each for each in choices if each in words)
        labels = tuple(f"{words[each]} [{each[0]}]" for each in known)
        return cls(
            (*known, TELL), (*labels, "no, and tell it: … (type what it should do instead)"), known.index("deny")
        )

    def move(self, step: int) -> None:
        self.chosen = (self.chosen + step) % len(self.choices)

    def numbered(self, digit: str) -> str:
        """The answer of that number; empty when there is none."""
        place = int(digit) - 1 if digit.isdecimal() else -1
        return self.choices[place] if 0 <= place < len(self.choices) else ""

    def rows(self, width: int, height: int) -> list[tuple[str, str]]:
        """(style, row) of each answer, and how one is given. Whole, unless there is no room for so many rows."""
        marks = [f"{'>' if place == self.chosen else ' '} {place + 1}. " for place in range(len(self.labels))]
        rows = [
            ("chosen" if place == self.chosen else "", row)
            for place, label in enumerate(self.labels)
            for row in hanging(marks[place], label, width)
        ]
        rows += [("status", row) for row in hanging("  ", HINT, width)]
        if len(rows) <= height:
            return rows
        styles = ["chosen" if place == self.chosen else "" for place in range(len(self.labels))]
        texts = [mark + label for mark, label in zip(marks, self.labels, strict=True)]
        return [
            (style, cut(text, width)) for style, text in zip([*styles, "status"], [*texts, f"  {HINT}"], strict=True)
        ]
