"""Copy the last answer to the terminal's clipboard."""

from hermes.errors import UserError
from hermes.host.session_text import last_messages, said
from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash


async def run(chat: Chat, _words: str) -> None:
    text = chat.last_answer or await _stored(chat)
    if not text:
        raise UserError("there is no answer yet")
    if not chat.face.copy(text):
        raise UserError("this terminal has no clipboard; /save writes the session to a file")
    chat.say(f"{len(text)} characters are copied, if the terminal allows it (OSC 52).")


async def _stored(chat: Chat) -> str:
    rows = await chat.in_thread(last_messages, chat.db, chat.session_id, 1)
    answers = [said(row) for row in rows if row["role"] == "assistant"]
    return answers[-1] if answers else ""


COMMAND = Slash(run=run)
