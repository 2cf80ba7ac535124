"""Tell where this session stands: model, mode, folder, context, cost."""

from hermes.host.command import CommandCall, CommandResult, SlashCommand


async def run(call: CommandCall) -> CommandResult:
    session = call.session
    figures = session.figures
    count = await session.in_thread(session.db.message_count, session.session_id)
    used, window = figures.in_context, figures.window
    share = f" of {window:,} ({used / window:.0%})" if window else ", of a window that nobody has told"
    cost = "not known" if figures.cost_usd is None else f"${figures.cost_usd:.4f}"
    rows = (
        ("session", f"{session.session_id}{f', {figures.title}' if figures.title else ''}"),
        ("model", figures.model),
        ("mode", f"{session.work_mode} (edits, ask, plan; /permissions tells more)"),
        ("folder", session.cwd),
        ("messages", f"{count}, {len(session.queue.open_ones)} waiting"),
        ("context", f"{used:,} tokens{share}" if used else "known after the next answer"),
        ("tokens", f"{figures.read:,} read, {figures.written:,} written"),
        ("cost", cost),
        ("while busy", f"a message is for {session.busy_mode}" if session.busy_mode != "queue" else "a message waits"),
    )
    data = {name.replace(" ", "_"): told for name, told in rows}
    return CommandResult(sections=(("", rows),), data=data)


COMMAND = SlashCommand(run=run)
