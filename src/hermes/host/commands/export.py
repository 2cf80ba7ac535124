"""Write this session to a file: Markdown, or JSON when its name ends so."""

from pathlib import Path

import msgspec

from hermes.config.paths import write_private
from hermes.disk_trouble import reason_of
from hermes.errors import UserError
from hermes.host.command import CommandCall, CommandResult, SlashCommand
from hermes.host.session_text import markdown


async def run(call: CommandCall) -> CommandResult:
    session = call.session
    exported = await session.in_thread(session.db.export_session, session.session_id)
    if exported is None:
        raise UserError("nothing was said in this session yet, so there is nothing to export")
    file = _file(call)
    if file.suffix == ".json":
        text = msgspec.json.format(msgspec.json.encode(exported), indent=2).decode() + "\n"
    else:
        text = markdown(exported, with_tools=True)
    try:
        await session.in_thread(write_private, file, text)
    except OSError as error:
        raise UserError(f"cannot write {file}: {reason_of(error)}") from error
    return CommandResult(text=f"{len(exported['messages'])} messages are in {file}", data={"file": str(file)})


def _file(call: CommandCall) -> Path:
    named = call.words or f"{call.session.session_id}.md"
    return Path(call.session.cwd, Path(named).expanduser())


COMMAND = SlashCommand(run=run, args="[FILE]")
