"""Show or change the models that take over: list, add MODEL, remove, clear."""

from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash, show_command, words_of


async def run(chat: Chat, words: str) -> None:
    parts = words_of(words) or ["list"]
    await show_command(chat, "fallback", *parts)
    if parts[0] != "list":
        chat.say("It acts when hermes is started again.", "dim")


COMMAND = Slash(run=run, args="[list|add|remove|clear]", when_busy=False)
