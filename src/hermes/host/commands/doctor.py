"""Check the installation and say what to run to mend it."""

from hermes.host.command import CommandCall, CommandResult, SlashCommand


async def run(call: CommandCall) -> CommandResult:
    return CommandResult(screen=await call.hermes("doctor", *call.words.split()))


COMMAND = SlashCommand(run=run, args="[CHECK]")
