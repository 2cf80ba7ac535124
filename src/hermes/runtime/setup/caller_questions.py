"""Questions to whoever made the agent: through a callback, plain or async, within a time."""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from hermes.config.sections import agent as agent_section
from hermes.config.settings import Settings
from hermes.errors import ToolError
from hermes.runtime.facade import caller
from hermes.tools.calling.pool import DaemonPool

AskUser: TypeAlias = Callable[[str, Sequence[str] | None], Awaitable[str]]
DECIDE = "decide for yourself what fits the task best, and say in your answer what you assumed"
log = logging.getLogger(__name__)


async def ask_caller(callback: Callable[..., Any], pool: DaemonPool, *args: Any) -> Any:
    """What `callback` answers: awaited, called where the turn's caller waits, or called in a thread of the pool."""
    if inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(type(callback).__call__):
        return await callback(*args)
    waiting = caller.get()
    return await (waiting.call(callback, *args) if waiting is not None else pool.run(callback, *args))


def question_to_user(callback: Callable[..., Any] | None, settings: Settings, pool: DaemonPool) -> AskUser | None:
    """How `clarify` asks: through `clarify_callback`, for at most `agent.clarify_timeout`; None where nobody is."""
    if callback is None:
        return None
    timeout_s = settings.of(agent_section.Section).clarify_timeout or None

    async def ask(question: str, choices: Sequence[str] | None) -> str:
        limit = None
        try:
            async with asyncio.timeout(timeout_s) as limit:
                answer = await ask_caller(callback, pool, question, list(choices) if choices else None)
        except Exception as error:  # the border to the caller's code
            if limit is not None and limit.expired():
                raise ToolError(f"nobody answered within {timeout_s:g} s; {DECIDE}") from error
            log.exception("clarify_callback failed")
            raise ToolError(f"the question could not be put: {str(error) or type(error).__name__}; {DECIDE}") from error
        if answer is None:
            raise ToolError(f"nobody answered; {DECIDE}")
        return str(answer)

    return ask
