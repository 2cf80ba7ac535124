"""Questions of a session to people: each has an id, choices and a deadline, and the first answer wins."""

import asyncio
import secrets
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import to_builtins

from hermes.host.events import QuestionAnswered, QuestionAsked
from hermes.host.host_errors import NothingPending
from hermes.types import JsonObject, Question, QuestionKind

if TYPE_CHECKING:
    from hermes.tools.approval.question import Answer, ApprovalQuestion

NO = "deny"
SECRETS = ("secret", "sudo")  # kinds whose answers are told to nobody but the turn


class QuestionJournal(Protocol):
    """Where questions and answers are told and kept: the live session."""

    def tell(self, event: QuestionAsked | QuestionAnswered) -> None: ...
    async def store_event(self, kind: str, about: str, body: JsonObject) -> None: ...
    def later(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run `work` as a task of the session's host."""
        ...


class QuestionDesk:
    """The open questions of one session, oldest first.

    `journal` shows and keeps what is asked and answered. `can_ask` says whether somebody could answer, now or before
    the deadline; where nobody could, the answer is no at once.
    """

    def __init__(
        self, journal: QuestionJournal, can_ask: Callable[[], bool], *, timeout_s: float, clarify_timeout_s: float
    ) -> None:
        self._journal = journal
        self._can_ask = can_ask
        self._timeout_s = timeout_s
        self._clarify_timeout_s = clarify_timeout_s or None  # as long as the turn may take
        self._open: dict[str, tuple[Question, asyncio.Future[str | None]]] = {}

    @property
    def open_ones(self) -> tuple[Question, ...]:
        """Those that wait for an answer."""
        return tuple(question for question, _ in self._open.values())

    async def approve(self, asked: "ApprovalQuestion") -> "Answer":
        """The agent's `approval_callback`."""
        from hermes.tools.approval.gate import NobodyHere  # paid by who is asked
        from hermes.tools.approval.question import facts_of
        from hermes.tools.approval.queue import answer_of

        if not self._can_ask():
            raise NobodyHere
        facts = facts_of(asked)
        kind: QuestionKind = "edit" if asked.action.kind == "write" else "approval"
        edit = asked.action.details.get("edit")
        said = await self._ask(kind, asked.description, asked.choices, facts, {"edit": edit()} if edit else {})
        return answer_of(said or NO, asked.choices)

    async def sudo_password(self, prompt: str) -> str | None:
        """The agent's `sudo_password_callback`."""
        return await self._ask("sudo", prompt, ()) if self._can_ask() else None

    async def clarify(self, question: str, choices: Sequence[str] | None = None) -> str | None:
        """What the model wants to know from the person; None when nobody said it."""
        return await self._ask("clarify", question, tuple(choices or ())) if self._can_ask() else None

    def answer(self, question_id: str | None, said: str | None, by: str) -> Question:
        """Answer a question, without an id the oldest; `NothingPending` when it is not open, or no longer."""
        wanted = question_id or next(iter(self._open), "")
        found = self._open.pop(wanted, None)
        if found is None:
            which = f"there is no open question {question_id!r}" if question_id else "nothing is asked"
            raise NothingPending(f"{which}; it may have been answered, or its time is over")
        question, waits = found
        if not waits.done():
            waits.set_result(said)
        shown = "" if question.kind in SECRETS else said or NO
        self._journal.later(self._answered(QuestionAnswered(question_id=question.id, answer=shown, by=by)), "an answer")
        return question

    def deny(self, by: str) -> int:
        """No, to all that is open; how many that were."""
        ids = list(self._open)
        for each in ids:
            self.answer(each, None, by)
        return len(ids)

    async def _ask(
        self,
        kind: QuestionKind,
        text: str,
        choices: tuple[str, ...],
        details: JsonObject | None = None,
        shown: JsonObject | None = None,
    ) -> str | None:
        timeout_s = self._clarify_timeout_s if kind == "clarify" else self._timeout_s
        question = Question(
            id=secrets.token_hex(4),
            kind=kind,
            text=text,
            choices=choices,
            deadline=time.time() + timeout_s if timeout_s is not None else 0.0,
            details=details or {},
            shown=shown or {},
        )
        waits: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        stored = {name: value for name, value in to_builtins(question).items() if name != "shown"}
        await self._journal.store_event("question_asked", question.id, stored)
        self._open[question.id] = (question, waits)
        self._journal.tell(QuestionAsked(question))
        try:
            async with asyncio.timeout(timeout_s):
                said: str | None = await waits
                return said
        except TimeoutError:
            return None
        finally:
            if question.id in self._open:
                self.answer(question.id, None, "deadline" if not _is_cancelled() else "interrupt")

    async def _answered(self, event: QuestionAnswered) -> None:
        body = {"answer": event.answer, "by": event.by}
        await self._journal.store_event("question_answered", event.question_id, body)
        self._journal.tell(event)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
