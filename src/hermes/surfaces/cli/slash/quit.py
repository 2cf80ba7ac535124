"""Leave; the session can be resumed."""

from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash


async def run(chat: Chat, _words: str) -> None:
    chat.face.leave()


COMMAND = Slash(run=run, aliases=("exit",))
