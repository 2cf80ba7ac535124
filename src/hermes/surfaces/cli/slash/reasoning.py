"""How long the model thinks (none … xhigh), and whether that is shown (show, hide)."""

from hermes.errors import UserError
from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")


async def run(chat: Chat, words: str) -> None:
    if not words:
        effort = chat.settings.get("agent.reasoning_effort") or "the provider's own choice"
        chat.say(f"Effort: {effort}; it is {'shown' if chat.look.show_reasoning else 'not shown'}.")
    elif words in ("show", "hide"):
        chat.look.show_reasoning = words == "show"
        chat.say("What the model thinks is shown." if words == "show" else "What the model thinks is not shown.")
    elif words in EFFORTS:
        if chat.is_busy:
            raise UserError("the effort can be changed when this turn has ended; /stop ends it now")
        await chat.reconfigure(agent__reasoning_effort=words)
        chat.say(f"Effort: {words}, for this run.")
    else:
        raise UserError(f"/reasoning takes {', '.join(EFFORTS)}, show or hide")


COMMAND = Slash(run=run, args="[none … xhigh|show|hide]")
