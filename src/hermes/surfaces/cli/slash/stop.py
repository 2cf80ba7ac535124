"""Stop the turn that runs; what waits is held."""

from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash


async def run(chat: Chat, _words: str) -> None:
    if not chat.interrupt():
        chat.say("No turn is running.")


COMMAND = Slash(run=run)
