"""Let commands and file tools write below one more folder, for this session."""

from hermes.config.sections import terminal
from hermes.errors import UserError
from hermes.host.added_folders import real_folder
from hermes.host.command import CommandCall, CommandResult, SlashCommand, words_of
from hermes.host.session_changes import refuse_when_busy


async def run(call: CommandCall) -> CommandResult:
    named = words_of(call.words)
    if len(named) != 1:
        raise UserError("name one folder: /add-dir DIR")
    session = call.session
    folder = real_folder(named[0], session.start.launched_in)
    refuse_when_busy(session)
    if (border := session.agent.border) is not None:
        await border.open_folder(folder)
    else:  # nothing was planned yet
        known = session.settings.of(terminal.Section).sandbox_writable
        await session.reconfigure(terminal__sandbox_writable=[*known, folder])
    return CommandResult(text=f"This session may write below {folder} from now on.", data={"folder": folder})


COMMAND = SlashCommand(run=run, args="DIR", when_busy=False)
