"""Write this session to a JSON file."""

from pathlib import Path

import msgspec

from hermes.config import paths
from hermes.config.paths import write_private
from hermes.disk_trouble import reason_of
from hermes.errors import UserError
from hermes.surfaces.cli.interactive.chat import Chat, stamp
from hermes.surfaces.cli.interactive.slashes import Slash


async def run(chat: Chat, words: str) -> None:
    session = await chat.in_thread(chat.db.export_session, chat.session_id)
    if session is None:
        raise UserError("nothing was said in this session yet, so there is nothing to save")
    file = _file(chat, words)
    text = msgspec.json.format(msgspec.json.encode(session), indent=2).decode()
    try:
        await chat.in_thread(write_private, file, f"{text}\n")
    except OSError as error:
        raise UserError(f"cannot write {file}: {reason_of(error)}") from error
    chat.say(f"{len(session['messages'])} messages are in {file}")


def _file(chat: Chat, words: str) -> Path:
    if words:
        return Path(chat.cwd, Path(words).expanduser())
    return paths.made(chat.cli.home / "sessions") / f"{chat.session_id}_{stamp()}.json"


COMMAND = Slash(run=run, args="[FILE]")
