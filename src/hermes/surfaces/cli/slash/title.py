"""Show or set the title of this session."""

from hermes.errors import UserError
from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash


async def run(chat: Chat, words: str) -> None:
    if not words:
        title = await chat.in_thread(chat.db.get_session_title, chat.session_id)
        chat.say(title or "This session has no title yet; give it one with /title TITLE")
        return
    if not await named(chat, words):
        raise UserError("nothing was said in this session yet; ask something first, or use /new TITLE")
    chat.say(f"This session is now called {words!r}.")


async def named(chat: Chat, title: str) -> bool:
    """Give the session this title; False when it is not stored yet."""
    try:
        is_set = bool(await chat.in_thread(chat.db.set_session_title, chat.session_id, title))
    except ValueError as error:
        raise UserError(f"{error}; choose another title") from error
    chat.spent.title = title
    return is_set


COMMAND = Slash(run=run, args="[TITLE]")
