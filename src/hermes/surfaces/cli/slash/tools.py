"""Show which tools a session gets, and why not others."""

import shlex

from hermes.surfaces.cli.interactive.bridge import show_command
from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash


async def run(chat: Chat, words: str) -> None:
    await show_command(chat, "tools", *(shlex.split(words) or ["list"]))
    if words.startswith(("enable", "disable")):
        chat.say("This session keeps the tools it has; /new gets the others.", "dim")


COMMAND = Slash(run=run, args="[enable|disable NAME]")
