"""Ask through a callback of the contract: sync or async, given the question or its command and description."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from hermes.scope import TurnScope
from hermes.tools.approval.gate import Ask
from hermes.tools.approval.question import Answer, Question

_WORDS: dict[str, Answer] = {
    "o": "once",
    "once": "once",
    "y": "once",
    "yes": "once",
    "t": "task",
    "task": "task",
    "s": "session",
    "session": "session",
    "a": "always",
    "always": "always",
}


def ask_callback(callback: Callable[..., Any], run: Callable[..., Awaitable[Any]]) -> Ask:
    """An `Ask` over `callback`, which is called as `callback(question)` or `callback(command, description)`.

    A coroutine function is awaited; any other is called by `run`, in whatever thread that means. The answer is one of
    once, task, session, always, deny; True and False stand for once and deny.
    """
    is_async = inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(getattr(callback, "__call__", None))  # noqa: B004 - is it async, not is it callable
    wants_words = _takes_two(callback)
    names_permanent = wants_words and _takes_keyword(callback, "allow_permanent")

    async def ask(question: Question, _scope: TurnScope) -> Answer:
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
