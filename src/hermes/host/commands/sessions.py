"""List the newest sessions."""

from hermes.host.command import CommandCall, CommandResult, SlashCommand


async def run(call: CommandCall) -> CommandResult:
    words = ("search", call.words) if call.words else ("list", "--limit", "20")
    return CommandResult(screen=await call.hermes("sessions", *words))


COMMAND = SlashCommand(run=run, args="[WORDS TO FIND]")
