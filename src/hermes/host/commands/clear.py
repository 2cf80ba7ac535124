"""Clear the screen and begin a new session."""

from hermes.host.command import CommandCall, CommandResult, SessionTarget, SlashCommand


async def run(_call: CommandCall) -> CommandResult:
    return CommandResult(note="A new session.", clears=True, goes_to=SessionTarget(ends="new_session"))


COMMAND = SlashCommand(run=run, when_busy=False, surfaces=("terminal",))
