"""Go on in a copy of this session; the original stays as it is."""

from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash
from hermes.surfaces.cli.session_copy import copied


async def run(chat: Chat, words: str) -> None:
    old = chat.session_id
    new = await chat.in_thread(copied, chat.db, old, words)
    await chat.open(new, is_copy=True)
    chat.say(f"You are in a copy now, {new}; the original is {old}.")


COMMAND = Slash(run=run, args="[TITLE]", aliases=("fork",), when_busy=False)
