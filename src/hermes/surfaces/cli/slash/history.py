"""Show what was said in this session."""

from hermes.host.session_text import last_messages
from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.recent_messages import shown
from hermes.surfaces.cli.interactive.slashes import Slash

USUAL = 20


async def run(chat: Chat, words: str) -> None:
    wanted = int(words) if words.isdecimal() and int(words) else USUAL
    messages = await chat.in_thread(last_messages, chat.db, chat.session_id, wanted)
    if not messages:
        chat.say("Nothing was said yet.")
        return
    chat.face.write(await chat.in_thread(shown, messages, chat.look.display, chat.painter))


COMMAND = Slash(run=run, args="[EXCHANGES]")
