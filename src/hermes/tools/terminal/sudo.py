"""A password for `sudo`: asked for once in a session, kept in memory alone, in no argument and no file."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias, runtime_checkable

from hermes.seams import Decision, ToolContext

AskPassword: TypeAlias = Callable[[str], Awaitable[str | None]]  # what was typed, or None when nobody answered
ASK_LIMIT_S = 45.0
_PROBE_LIMIT_S = 5.0


@runtime_checkable
class TakesPassword(Protocol):
    """An environment that can hand a password to `sudo`, and perhaps knows whom to ask for it."""

    sudo_password: str | None
    ask_password: AskPassword | None


async def provide_password(command: str, ctx: ToolContext) -> None:
    """See that `sudo` in `command` finds a password, if it needs one and somebody can be asked.

    Without one the command runs as it is, and `sudo` itself says that it cannot ask. Nobody is asked twice.
    """
    from hermes.tools.terminal.simple_commands import calls_sudo  # a session without commands does without

    environment = ctx.environment
    if not calls_sudo(command) or not isinstance(environment, TakesPassword):
        return
    if environment.sudo_password is not None or environment.ask_password is None:
        return
    probe = await ctx.environment.execute(
        "command sudo -n true", Decision.own("does sudo need a password"), ctx.scope, timeout_s=_PROBE_LIMIT_S
    )
    if probe.exit_code == 0:
        return
    ask, environment.ask_password = environment.ask_password, None
    try:
        async with asyncio.timeout(ctx.scope.limit(ASK_LIMIT_S)):
            environment.sudo_password = await ask("Password for sudo: ")
    except TimeoutError:
        return
