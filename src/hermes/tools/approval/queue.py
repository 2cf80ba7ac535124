"""Questions that are answered elsewhere: a chat, an editor. One line of them per session, oldest first."""

import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from hermes.scope import TurnScope
from hermes.tools.approval.gate import Ask, NobodyHere
from hermes.tools.approval.question import Answer, ApprovalQuestion, facts_of

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

        async def ask(question: ApprovalQuestion, _scope: TurnScope) -> Answer:
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


_ANSWERS: tuple[Answer, ...] = ("once", "task", "session", "always")
_WORDS = {word: one for one in _ANSWERS for word in (one, one[0])} | {"y": _ANSWERS[0], "yes": _ANSWERS[0]}


def ask_callback(callback: Callable[..., Any], run: Callable[..., Awaitable[Any]], *, in_words: bool = False) -> Ask:
    """An `Ask` over `callback`, which is called as `callback(question)` or `callback(command, description)`.

    By what it takes, that is; `in_words` is for one that the contract promises the latter.
    A coroutine function is awaited; any other is called by `run`, in whatever thread that means. The answer is one of
    once, task, session, always, deny; True and False stand for once and deny.
    """
    is_async = inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(getattr(callback, "__call__", None))  # noqa: B004 - is it async, not is it callable
    wants_words = in_words or _takes_two(callback)
    names_permanent = wants_words and _takes_keyword(callback, "allow_permanent")

    async def ask(question: ApprovalQuestion, _scope: TurnScope) -> Answer:
        args: tuple[Any, ...] = (question.command, question.description) if wants_words else (question,)
        keywords = {"allow_permanent": question.allow_permanent} if names_permanent else {}
        said = await (callback(*args, **keywords) if is_async else run(callback, *args, **keywords))
        return answer_of(await said if inspect.isawaitable(said) else said, question.choices)

    return ask


def answer_of(said: Any, choices: tuple[str, ...]) -> Answer:
    """What was said as an answer: a yes wider than any on offer is the widest one, and what is no clear yes is a no."""
    if isinstance(said, bool):
        return "once" if said else "deny"
    answer = _WORDS.get(said.strip().lower(), "deny") if isinstance(said, str) else "deny"
    if answer == "always" and "always" not in choices:
        answer = "session"
    if answer == "session" and "session" not in choices:
        answer = "once"
    return answer


def _takes_two(callback: Callable[..., Any]) -> bool:
    positional = [one for one in _parameters(callback) if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    required = [one for one in positional if one.default is one.empty]
    takes_any = any(one.kind is one.VAR_POSITIONAL for one in _parameters(callback))
    return len(required) >= 2 or (len(positional) >= 2 and not required) or (takes_any and not positional)


def _takes_keyword(callback: Callable[..., Any], name: str) -> bool:
    return any(
        one.kind is one.VAR_KEYWORD or (one.name == name and one.kind is not one.POSITIONAL_ONLY)
        for one in _parameters(callback)
    )


def _parameters(callback: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(callback).parameters.values())
    except (TypeError, ValueError):  # a callable of another language says nothing about itself
        return []
