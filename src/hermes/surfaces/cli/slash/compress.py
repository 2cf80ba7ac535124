"""Sum up what was said so far; comes later."""

from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash


async def run(chat: Chat, _words: str) -> None:
    chat.say("Compression is not in this version yet; /new begins afresh, and /branch keeps a copy.")


COMMAND = Slash(run=run, args="[FOCUS]")
