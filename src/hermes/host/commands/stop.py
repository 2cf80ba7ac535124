"""Stop the turn that runs; what waits is held."""

from hermes.host.command import CommandCall, CommandResult, SlashCommand


async def run(call: CommandCall) -> CommandResult:
    return CommandResult(text="" if call.session.interrupt() else "No turn is running.")


COMMAND = SlashCommand(run=run)
