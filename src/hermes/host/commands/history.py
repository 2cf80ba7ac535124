"""Show what was said in this session."""

from hermes.host.command import CommandCall, CommandResult, SlashCommand
from hermes.host.session_text import last_messages, said

USUAL = 20


async def run(call: CommandCall) -> CommandResult:
    session, words = call.session, call.words
    wanted = int(words) if words.isdecimal() and int(words) else USUAL
    messages = await session.in_thread(last_messages, session.db, session.session_id, wanted)
    if not messages:
        return CommandResult(text="Nothing was said yet.")
    text = "\n\n".join(f"{'> ' if row['role'] == 'user' else ''}{said(row).strip()}" for row in messages)
    return CommandResult(text=text, form="messages", data={"messages": messages})


COMMAND = SlashCommand(run=run, args="[EXCHANGES]")
