"""Take back the last exchange; files stay as they are (see /rollback)."""

from hermes.host.command import CommandCall, CommandResult, SlashCommand


async def run(call: CommandCall) -> CommandResult:
    text, count = await call.session.undo()
    told = f"{count} messages are taken back; the model no longer knows of them. Files stay as they are."
    return CommandResult(
        text=told,
        offer=text,
        note="What you said stands in the input line again, where there is room.",
        data={"removed": count},
    )


COMMAND = SlashCommand(run=run, when_busy=False)
