"""Show or change the models that take over: list, add MODEL, remove, clear."""

from hermes.host.command import CommandCall, CommandResult, SlashCommand, one_of, words_of


async def run(call: CommandCall) -> CommandResult:
    parts = words_of(call.words) or ["list"]
    screen = await call.hermes("fallback", *parts)
    return CommandResult(screen=screen, note="" if parts[0] == "list" else "It acts when hermes is started again.")


COMMAND = SlashCommand(
    run=run, args="[list|add|remove|clear]", when_busy=False, complete=one_of("list", "add", "remove", "clear")
)
