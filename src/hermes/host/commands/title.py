"""Show or set the title of this session."""

from hermes.errors import UserError
from hermes.host.command import CommandCall, CommandResult, SlashCommand
from hermes.host.live_session import LiveSession


async def run(call: CommandCall) -> CommandResult:
    session, words = call.session, call.words
    if not words:
        title = await session.in_thread(session.db.get_session_title, session.session_id)
        none = "This session has no title yet; give it one with /title TITLE"
        return CommandResult(text=title or none, data={"title": title})
    if not await named(session, session.session_id, words):
        raise UserError("nothing was said in this session yet; ask something first, or use /new TITLE")
    session.figures.title = words
    return CommandResult(text=f"This session is now called {words!r}.", data={"title": words})


async def named(session: LiveSession, session_id: str, title: str) -> bool:
    """Give the session of this id the title; False when it is not stored yet."""
    try:
        return bool(await session.in_thread(session.db.set_session_title, session_id, title))
    except ValueError as error:
        raise UserError(f"{error}; choose another title") from error


COMMAND = SlashCommand(run=run, args="[TITLE]")
