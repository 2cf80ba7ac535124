"""Sum up what was said so far, to make room; a topic is kept above all else."""

from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash


async def run(chat: Chat, words: str) -> None:
    if chat.is_busy:
        chat.say("After this turn; /stop ends it now.", "dim")
    chat.compress(words)


COMMAND = Slash(run=run, args="[TOPIC]", aliases=("compact",))
