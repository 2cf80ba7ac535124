"""A password for `sudo`: asked for once in a session, kept in memory alone, in no argument and no file."""

from typing import Protocol, runtime_checkable

from hermes.seams import Decision, ToolContext
from hermes.tools.terminal.words import calls_sudo

ASK_LIMIT_S = 45.0
_PROBE_LIMIT_S = 5.0


@runtime_checkable
class AsksSecrets(Protocol):
    """A context with a person behind it who can be asked for a secret."""

    async def ask_secret(self, prompt: str, timeout_s: float) -> str | None:
        """What was typed, or None when nobody answered."""
        ...


@runtime_checkable
class TakesPassword(Protocol):
    """An environment that can hand a password to `sudo`."""

    sudo_password: str | None


async def provide_password(command: str, ctx: ToolContext) -> None:
    """See that `sudo` in `command` finds a password, if it needs one and somebody can be asked.

    Without one the command runs as it is, and `sudo` itself says that it cannot ask.
    """
    environment = ctx.environment
    if not calls_sudo(command) or not isinstance(environment, TakesPassword):
        return
    if environment.sudo_password is not None or not isinstance(ctx, AsksSecrets):
        return
    probe = await ctx.environment.execute(
        "command sudo -n true", Decision.own("does sudo need a password"), ctx.scope, timeout_s=_PROBE_LIMIT_S
    )
    if probe.exit_code != 0:
        environment.sudo_password = await ctx.ask_secret("Password for sudo: ", ASK_LIMIT_S)
