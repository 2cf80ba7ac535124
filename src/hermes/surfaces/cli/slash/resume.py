"""Go on with another session: its id, the start of it, or its title."""

from hermes.host.session_select import find_session
from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash, show_command


async def run(chat: Chat, words: str) -> None:
    if not words:
        await show_command(chat, "sessions", "list", "--limit", "10")
        chat.say("Go on with one: /resume ID or title", "dim")
        return
    found = await chat.in_thread(find_session, chat.db, words)
    session_id = await chat.in_thread(chat.db.resolve_resume_session_id, found)
    if session_id == chat.session_id:
        chat.say("You are in that session already.")
        return
    await chat.leave_session("switched", session_id)


COMMAND = Slash(run=run, args="[SESSION]", when_busy=False)
