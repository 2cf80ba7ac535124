"""Show what commands may touch in this session, or why a PATH may be written or not."""

from hermes.host.command import CommandCall, CommandResult, SlashCommand, words_of


async def run(call: CommandCall) -> CommandResult:
    asked = words_of(call.words)
    return CommandResult(screen=await call.hermes("sandbox", *(["explain", *asked] if asked else ["show"])))


COMMAND = SlashCommand(run=run, args="[PATH]")
