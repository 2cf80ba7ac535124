"""Let commands and file tools write below one more folder, for this session."""

from hermes.config.sections import terminal
from hermes.errors import UserError
from hermes.surfaces.cli.chat.added_folders import real_folder
from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash, words_of


async def run(chat: Chat, words: str) -> None:
    named = words_of(words)
    if len(named) != 1:
        raise UserError("name one folder: /add-dir DIR")
    folder = real_folder(named[0], chat.launched_in)
    known = chat.settings.of(terminal.Section).sandbox_writable
    await chat.reconfigure(terminal__sandbox_writable=[*known, folder])
    chat.say(f"This session may write below {folder} from now on.")


COMMAND = Slash(run=run, args="DIR", when_busy=False)
