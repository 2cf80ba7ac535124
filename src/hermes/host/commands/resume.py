"""Go on with another session: its id, the start of it, or its title."""

from collections.abc import Iterable

from hermes.host.command import CommandCall, CommandResult, SessionTarget, SlashCommand
from hermes.host.conversation import CommandScene
from hermes.host.session_select import find_session
from hermes.host.session_text import age, title_of

SHOWN = 20


async def run(call: CommandCall) -> CommandResult:
    session = call.session
    if not call.words:
        screen = await call.hermes("sessions", "list", "--limit", "10")
        rows = await session.in_thread(lambda: session.db.list_sessions_rich(limit=50, order_by_last_active=True))
        choices = [
            {
                "label": f"{age(row.get('last_active')):9} {title_of(row) or row['id']}",
                "command": f"/resume {row['id']}",
            }
            for row in rows
            if row["id"] != session.session_id
        ]
        note = "Go on with one: /resume ID or title"
        return CommandResult(text="Your sessions:", screen=screen, note=note, data={"choices": choices})
    found = await session.in_thread(find_session, session.db, call.words)
    session_id = await session.in_thread(session.db.resolve_resume_session_id, found)
    if session_id == session.session_id:
        return CommandResult(text="You are in that session already.")
    return CommandResult(data={"session_id": session_id}, goes_to=SessionTarget(session_id=session_id, ends="switched"))


def _sessions(session: CommandScene, begun: str) -> Iterable[str]:
    rows = session.db.list_sessions_rich(limit=SHOWN, order_by_last_active=True)
    names = [str(row.get("title") or row["id"]) for row in rows]
    return [name for name in names if name.lower().startswith(begun.lower())]


COMMAND = SlashCommand(run=run, args="[SESSION]", when_busy=False, complete=_sessions)
