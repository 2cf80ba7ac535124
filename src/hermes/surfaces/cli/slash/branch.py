"""Go on in a copy of this session; the original stays as it is."""

from hermes.host.session_copy import copied
from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash


async def run(chat: Chat, words: str) -> None:
    old = chat.session_id
    new = await chat.in_thread(copied, chat.db, old, words)
    await chat.open(new, is_copy=True)
    chat.say(f"You are in a copy now, {new}; the original is {old}.")


COMMAND = Slash(run=run, args="[TITLE]", aliases=("fork",), when_busy=False)
