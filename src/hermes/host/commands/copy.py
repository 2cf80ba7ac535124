"""Copy the last answer to the terminal's clipboard."""

from hermes.errors import UserError
from hermes.host.command import CommandCall, CommandResult, SlashCommand
from hermes.host.live_session import LiveSession
from hermes.host.session_text import last_messages, said


async def run(call: CommandCall) -> CommandResult:
    text = call.session.last_answer or await _stored(call.session)
    if not text:
        raise UserError("there is no answer yet")
    told = f"{len(text)} characters are copied, if the terminal allows it (OSC 52)."
    return CommandResult(text=told, copies=text)


async def _stored(session: LiveSession) -> str:
    rows = await session.in_thread(last_messages, session.db, session.session_id, 1)
    answers = [said(row) for row in rows if row["role"] == "assistant"]
    return answers[-1] if answers else ""


COMMAND = SlashCommand(run=run, surfaces=("terminal",))
