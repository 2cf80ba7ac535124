"""List the newest sessions."""

from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash, show_command


async def run(chat: Chat, words: str) -> None:
    if words:
        await show_command(chat, "sessions", "search", words)
    else:
        await show_command(chat, "sessions", "list", "--limit", "20")


COMMAND = Slash(run=run, args="[WORDS TO FIND]")
