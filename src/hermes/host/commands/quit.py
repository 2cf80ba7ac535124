"""Leave; the session can be resumed."""

from hermes.host.command import CommandCall, CommandResult, SlashCommand


async def run(_call: CommandCall) -> CommandResult:
    return CommandResult(leaves=True)


COMMAND = SlashCommand(run=run, aliases=("exit",), surfaces=("terminal",))
