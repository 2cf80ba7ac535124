"""Begin a new session; the old one stays and can be resumed."""

from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash
from hermes.surfaces.cli.slash.title import named


async def run(chat: Chat, words: str) -> None:
    old = chat.session_id if await chat.exists() else ""
    await chat.leave_session("new_session")
    if words:
        await chat.in_thread(chat.db.ensure_session, chat.session_id, chat.wish.source)
        await named(chat, words)
    chat.say(f"A new session{f'; the old one is {old}' if old else ''}.", "dim")


COMMAND = Slash(run=run, args="[TITLE]", aliases=("reset",), when_busy=False)
