"""Show which tools a session gets, and why not others."""

from hermes.host.command import CommandCall, CommandResult, SlashCommand, one_of, words_of


async def run(call: CommandCall) -> CommandResult:
    screen = await call.hermes("tools", *(words_of(call.words) or ["list"]))
    is_change = call.words.startswith(("enable", "disable"))
    return CommandResult(
        screen=screen, note="This session keeps the tools it has; /new gets the others." if is_change else ""
    )


COMMAND = SlashCommand(run=run, args="[enable|disable NAME]", complete=one_of("list", "enable", "disable"))
