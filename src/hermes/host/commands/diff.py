"""Show what this session has changed in files, from how they were before it."""

from hermes.context.checkpoints import CheckpointError
from hermes.errors import UserError
from hermes.host.command import CommandCall, CommandResult, SlashCommand


async def run(call: CommandCall) -> CommandResult:
    from hermes.host.session_rewind import SessionRewind  # brings the checkpoints

    try:
        text = await SessionRewind(call.session).diff()
    except CheckpointError as error:
        raise UserError(str(error)) from error
    text = call.session.redactor.redact(text)
    note = "" if text else "This session has changed no file, or all is as it was before."
    return CommandResult(text=text, form="diff", note=note, data={"diff": text})


COMMAND = SlashCommand(run=run)
