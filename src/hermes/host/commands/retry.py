"""Take back the last exchange and ask the same again."""

from hermes.host.command import CommandCall, CommandResult, SlashCommand


async def run(call: CommandCall) -> CommandResult:
    text, _ = await call.session.undo()
    await call.session.submit(call.words or text, first=True)
    call.session.release()
    return CommandResult()


COMMAND = SlashCommand(run=run, args="[OTHER WORDS]", when_busy=False)
