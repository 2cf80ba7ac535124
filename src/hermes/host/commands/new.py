"""Begin a new session; the old one stays and can be resumed."""

from hermes.host.command import CommandCall, CommandResult, SessionTarget, SlashCommand
from hermes.host.commands.title import named
from hermes.runtime.setup.process import RandomIds


async def run(call: CommandCall) -> CommandResult:
    session = call.session
    old = session.session_id if await session.exists() else ""
    new = RandomIds().session()
    if call.words:
        await session.in_thread(session.db.ensure_session, new, session.asked.source)
        await named(session, new, call.words)
    return CommandResult(
        note=f"A new session{f'; the old one is {old}' if old else ''}.",
        data={"session_id": new},
        goes_to=SessionTarget(session_id=new if call.words else None, ends="new_session", is_copy=bool(call.words)),
    )


COMMAND = SlashCommand(run=run, args="[TITLE]", aliases=("reset",), when_busy=False)
