"""Show what commands may touch in this session, or why a PATH may be written or not."""

from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash, show_command, words_of


async def run(chat: Chat, words: str) -> None:
    asked = words_of(words)
    await show_command(chat, "sandbox", *(["explain", *asked] if asked else ["show"]))


COMMAND = Slash(run=run, args="[PATH]")
