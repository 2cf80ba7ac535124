"""Leave, and let the session go on; attach to it again whenever you like."""

from hermes.errors import UserError
from hermes.host.command import CommandCall, CommandResult, SlashCommand


async def run(call: CommandCall) -> CommandResult:
    if not call.surface.can_detach:
        raise UserError("this session lives in this terminal; one that you can leave running: hermes attach --new")
    return CommandResult(leaves=True)


COMMAND = SlashCommand(run=run, surfaces=("terminal",))
