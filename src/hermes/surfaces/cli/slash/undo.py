"""Take back the last exchange; files stay as they are (see /rollback)."""

from hermes.errors import UserError
from hermes.host.session_text import said
from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash


async def run(chat: Chat, _words: str) -> None:
    text, count = await taken_back(chat)
    chat.face.offer(text)
    chat.say(f"{count} messages are taken back; the model no longer knows of them. Files stay as they are.")


async def taken_back(chat: Chat) -> tuple[str, int]:
    """Set the last exchange aside; what was asked in it, and how many messages that were."""
    rows = await chat.in_thread(chat.db.list_recent_user_messages, chat.session_id, 1)
    if not rows:
        raise UserError("nothing was asked in this session yet")
    done = await chat.in_thread(chat.db.rewind_to_message, chat.session_id, rows[0]["id"])
    return said(rows[0]).strip(), int(done["rewound"])


COMMAND = Slash(run=run, when_busy=False)
