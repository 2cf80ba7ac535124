"""Tell the version."""

from hermes import __version__
from hermes.host.command import CommandCall, CommandResult, SlashCommand


async def run(_call: CommandCall) -> CommandResult:
    return CommandResult(text=f"Hermes {__version__}", data={"version": __version__})


COMMAND = SlashCommand(run=run)
