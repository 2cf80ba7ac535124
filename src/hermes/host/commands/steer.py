"""Tell the model something during its turn; it reads it after its current calls."""

from hermes.errors import UserError
from hermes.host.command import CommandCall, CommandResult, SlashCommand


async def run(call: CommandCall) -> CommandResult:
    if not call.words:
        raise UserError("/steer TEXT tells the model something during its turn")
    if call.session.steer(call.words):
        return CommandResult(note=f"steering: {call.words}")
    await call.session.submit(call.words)
    return CommandResult()


COMMAND = SlashCommand(run=run, args="TEXT")
