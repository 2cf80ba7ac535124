"""Take back the last exchange and ask the same again."""

from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash
from hermes.surfaces.cli.slash.undo import taken_back


async def run(chat: Chat, words: str) -> None:
    text, _ = await taken_back(chat)
    await chat.message(words or text, first=True)
    chat.release()


COMMAND = Slash(run=run, args="[OTHER WORDS]", when_busy=False)
