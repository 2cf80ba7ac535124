"""Show what was said in this session."""

from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.past import last_messages, shown
from hermes.surfaces.cli.interactive.slashes import Slash

USUAL = 20


async def run(chat: Chat, words: str) -> None:
    wanted = int(words) if words.isdecimal() and int(words) else USUAL
    count = await chat.in_thread(chat.db.message_count, chat.session_id)
    messages = await chat.in_thread(last_messages, chat.db, chat.session_id, wanted, count)
    if not messages:
        chat.say("Nothing was said yet.")
        return
    chat.face.write(await chat.in_thread(shown, messages, chat.look.display, chat.painter))


COMMAND = Slash(run=run, args="[EXCHANGES]")
