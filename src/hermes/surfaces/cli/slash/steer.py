"""Tell the model something during its turn; it reads it after its current calls."""

from hermes.errors import UserError
from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash


async def run(chat: Chat, words: str) -> None:
    if not words:
        raise UserError("/steer TEXT tells the model something during its turn")
    if chat.agent.steer(words):
        chat.say(f"steering: {words}", "dim")
    else:
        await chat.message(words)


COMMAND = Slash(run=run, args="TEXT")
