"""Show what commands may touch in this session, or why a PATH may be written or not."""

from hermes.confinement.policy import TellsNetwork
from hermes.host.command import CommandCall, CommandResult, SlashCommand, words_of


async def run(call: CommandCall) -> CommandResult:
    asked = words_of(call.words)
    screen = await call.hermes("sandbox", *(["explain", *asked] if asked else ["show"]))
    border = call.session.agent.border
    if not asked and isinstance(border, TellsNetwork) and border.network_lines:
        screen = "\n".join([screen.rstrip("\n"), "in this session", *border.network_lines])
    return CommandResult(screen=screen)


COMMAND = SlashCommand(run=run, args="[PATH]")
