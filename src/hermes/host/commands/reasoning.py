"""How long the model thinks (none … xhigh), and whether that is shown (show, hide)."""

from hermes.errors import UserError
from hermes.host.command import CommandCall, CommandResult, SlashCommand, one_of
from hermes.host.host_errors import SessionBusy

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")


async def run(call: CommandCall) -> CommandResult:
    session, words = call.session, call.words
    if not words:
        effort = session.settings.get("agent.reasoning_effort") or "the provider's own choice"
        shown = "shown" if call.surface.shows_reasoning else "not shown"
        return CommandResult(text=f"Effort: {effort}; it is {shown}.", data={"effort": effort})
    if words in ("show", "hide"):
        is_shown = words == "show"
        told = "What the model thinks is shown." if is_shown else "What the model thinks is not shown."
        return CommandResult(text=told, data={"shows_reasoning": is_shown})
    if words not in EFFORTS:
        raise UserError(f"/reasoning takes {', '.join(EFFORTS)}, show or hide")
    if session.is_busy:
        raise SessionBusy("the effort can be changed when this turn has ended; /stop ends it now")
    await session.reconfigure(agent__reasoning_effort=words)
    return CommandResult(text=f"Effort: {words}, for this run.", data={"effort": words})


COMMAND = SlashCommand(run=run, args="[none … xhigh|show|hide]", complete=one_of(*EFFORTS, "show", "hide"))
