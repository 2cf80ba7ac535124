"""Clear the screen and begin a new session."""

from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash


async def run(chat: Chat, _words: str) -> None:
    await chat.leave_session("new_session")
    chat.face.clear()
    chat.say("A new session.", "dim")


COMMAND = Slash(run=run, when_busy=False)
