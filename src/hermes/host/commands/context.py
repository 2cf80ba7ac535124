"""Tell how full the model's window is."""

from hermes.host.command import CommandCall, CommandResult, SlashCommand


async def run(call: CommandCall) -> CommandResult:
    session = call.session
    used, window = session.figures.in_context, session.figures.window
    count = await session.in_thread(session.db.message_count, session.session_id)
    if not used:
        text = f"{count} messages; how many tokens they are is known after the next answer."
    elif window:
        guessed = ", which nobody has told: it is assumed" if session.figures.is_window_assumed else ""
        text = f"{used} of {window} tokens ({used / window:.0%}) in {count} messages{guessed}."
    else:
        text = f"{used} tokens in {count} messages; how much this model can read is not known."
    return CommandResult(text=text, data={"used": used, "window": window, "messages": count})


COMMAND = SlashCommand(run=run)
