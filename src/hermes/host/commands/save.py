"""Write this session to a JSON file."""

import time
from pathlib import Path

import msgspec

from hermes.config import paths
from hermes.config.paths import write_private
from hermes.disk_trouble import reason_of
from hermes.errors import UserError
from hermes.host.command import CommandCall, CommandResult, SlashCommand


async def run(call: CommandCall) -> CommandResult:
    session = call.session
    exported = await session.in_thread(session.db.export_session, session.session_id)
    if exported is None:
        raise UserError("nothing was said in this session yet, so there is nothing to save")
    file = _file(call)
    text = msgspec.json.format(msgspec.json.encode(exported), indent=2).decode()
    try:
        await session.in_thread(write_private, file, f"{text}\n")
    except OSError as error:
        raise UserError(f"cannot write {file}: {reason_of(error)}") from error
    return CommandResult(text=f"{len(exported['messages'])} messages are in {file}", data={"file": str(file)})


def _file(call: CommandCall) -> Path:
    session = call.session
    if call.words:
        return Path(session.cwd, Path(call.words).expanduser())
    stamp = time.strftime("%Y%m%d_%H%M%S")
    return paths.made(session.settings.home / "sessions") / f"{session.session_id}_{stamp}.json"


COMMAND = SlashCommand(run=run, args="[FILE]")
