"""Questions that are answered elsewhere: a chat, an editor. One line of them per session, oldest first."""

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from hermes.scope import TurnScope
from hermes.tools.approval.callbacks import answer_of
from hermes.tools.approval.gate import Ask, NobodyHere
from hermes.tools.approval.question import Answer, Question, facts_of

Notify = Callable[[dict[str, Any]], Any]
logger = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class Pending:
    """One question on its way. Its future gets the answer, or is cancelled when nobody needs it any more."""

    facts: dict[str, Any]
    choices: tuple[str, ...] = ("once", "session", "always", "deny")
    answer: "Future[Answer]" = field(default_factory=Future)


class ApprovalQueue:
    """Waiting questions by session key, and who is told of new ones. Every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the mappings below
        self._notify: dict[str, Notify] = {}
        self._waiting: dict[str, list[Pending]] = {}

    def register(self, session_key: str, notify: Notify) -> None:
        """From now on `notify(facts)` is told of the session's questions; it must not wait for the answer."""
        with self._lock:
            self._notify[session_key] = notify

    def unregister(self, session_key: str) -> None:
        """Nobody is told any more; what still waits is a no."""
        with self._lock:
            self._notify.pop(session_key, None)
        self.release(session_key)

    def is_registered(self, session_key: str) -> bool:
        with self._lock:
            return session_key in self._notify

    def waiting(self, session_key: str) -> list[dict[str, Any]]:
        """What is waiting for an answer, oldest first."""
        with self._lock:
            return [one.facts for one in self._waiting.get(session_key, ())]

    def resolve(self, session_key: str, choice: str, *, everything: bool = False) -> int:
        """Answer the oldest question of the session, or all of them; how many were answered."""
        with self._lock:
            line = self._waiting.get(session_key, [])
            taken = list(line) if everything else line[:1]
            line[:] = line[len(taken) :]
            if not line:
                self._waiting.pop(session_key, None)
        return sum(_answered(one, answer_of(choice, one.choices)) for one in taken)

    def release(self, session_key: str) -> int:
        """The session's run is over: every question of it is a no."""
        return self.resolve(session_key, "deny", everything=True)

    def put(self, session_key: str, pending: Pending) -> bool:
        """Queue a question and tell of it; False when nobody could be told, and then it does not wait."""
        with self._lock:
            notify = self._notify.get(session_key)
            if notify is None:
                return False
            self._waiting.setdefault(session_key, []).append(pending)
        try:
            notify(pending.facts)
        except Exception:  # the border to a surface: a question nobody saw must not wait
            logger.exception("telling of an approval question failed")
            self.drop(session_key, pending)
            return False
        return True

    def drop(self, session_key: str, pending: Pending) -> None:
        """Take a question back; an answer that comes later finds nothing."""
        with self._lock:
            line = self._waiting.get(session_key, [])
            if pending in line:
                line.remove(pending)
            if not line:
                self._waiting.pop(session_key, None)
        pending.answer.cancel()

    def ask(self, session_key: str) -> Ask:
        """An `Ask` that queues for this session; an interrupt takes the question back."""

        async def ask(question: Question, _scope: TurnScope) -> Answer:
            pending = Pending(facts_of(question), question.choices)
            if not self.put(session_key, pending):
                raise NobodyHere
            try:
                return await asyncio.wrap_future(pending.answer)
            finally:
                self.drop(session_key, pending)

        return ask


def _answered(pending: Pending, answer: Answer) -> bool:
    if not pending.answer.set_running_or_notify_cancel():
        return False
    pending.answer.set_result(answer)
    return True
