"""Check the installation and say what to run to mend it."""

from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash, show_command


async def run(chat: Chat, words: str) -> None:
    await show_command(chat, "doctor", *words.split())


COMMAND = Slash(run=run, args="[CHECK]")
