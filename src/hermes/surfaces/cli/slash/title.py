"""Show or set the title of this session."""

from hermes.errors import UserError
from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash


async def run(chat: Chat, words: str) -> None:
    if not words:
        title = await chat.in_thread(chat.db.get_session_title, chat.session_id)
        chat.say(title or "This session has no title yet; give it one with /title TITLE")
        return
    try:
        is_set = await chat.in_thread(chat.db.set_session_title, chat.session_id, words)
    except ValueError as error:
        raise UserError(f"{error}; choose another title") from error
    if not is_set:
        raise UserError("nothing was said in this session yet; ask something first, or use /new TITLE")
    chat.spent.title = words
    chat.say(f"This session is now called {words!r}.")


COMMAND = Slash(run=run, args="[TITLE]")
