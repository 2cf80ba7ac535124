"""Tell how full the model's window is, and with what."""

from hermes.config.load import bound_settings
from hermes.host.command import CommandCall, CommandResult, SlashCommand
from hermes.host.live_session import LiveSession
from hermes.host.session_text import said
from hermes.runtime.prompt import tokens_in

RULES = ("rules", "context_files", "project")  # names of the parts of the prompt that are the person's own


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
    shares = await _shares(session)
    total = sum(shares.values()) or 1
    rows = tuple((name, f"{tokens:>8,}  {tokens / total:4.0%}") for name, tokens in shares.items())
    return CommandResult(
        text=text,
        sections=(("", rows),),
        note="The parts are estimates; the sum is the provider's own count.",
        data={"used": used, "window": window, "messages": count, "parts": shares},
    )


async def _shares(session: LiveSession) -> dict[str, int]:
    """About how many tokens each part takes."""
    with bound_settings(session.settings):
        report = await session.agent.adescribe_prompt()
    own = sum(part.tokens for part in report.parts if any(word in part.name for word in RULES))
    prompt = sum(part.tokens for part in report.parts) - own
    talk, results = await session.in_thread(_said, session)
    tools = sum(tool.tokens for tool in report.tools)
    return {"prompt": prompt, "tools": tools, "rules": own, "messages": talk, "results": results}


def _said(session: LiveSession) -> tuple[int, int]:
    talk = results = 0
    for row in session.db.get_messages(session.session_id):
        tokens = tokens_in(said(row))
        if row["role"] == "tool":
            results += tokens
        else:
            talk += tokens + tokens_in(str(row.get("tool_calls") or ""))
    return talk, results


COMMAND = SlashCommand(run=run)
