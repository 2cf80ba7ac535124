"""Show which tools a session gets, and why not others."""

from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash, show_command, words_of


async def run(chat: Chat, words: str) -> None:
    await show_command(chat, "tools", *(words_of(words) or ["list"]))
    if words.startswith(("enable", "disable")):
        chat.say("This session keeps the tools it has; /new gets the others.", "dim")


COMMAND = Slash(run=run, args="[enable|disable NAME]")
