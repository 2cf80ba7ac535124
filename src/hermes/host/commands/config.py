"""Show or change settings: show, get KEY, set KEY VALUE, explain KEY."""

from hermes.errors import UserError
from hermes.host.command import CommandCall, CommandResult, SlashCommand, one_of, words_of

ALLOWED = ("show", "get", "set", "unset", "path", "check", "explain")


async def run(call: CommandCall) -> CommandResult:
    parts = words_of(call.words) or ["show"]
    if parts[0] not in ALLOWED:
        raise UserError(f"/config takes {', '.join(ALLOWED)}")
    screen = await call.hermes("config", *parts)
    is_change = parts[0] in ("set", "unset")
    later = "It acts when hermes is started again; /model, /reasoning and /busy act at once."
    return CommandResult(screen=screen, note=later if is_change else "")


COMMAND = SlashCommand(run=run, args="[show|get|set|explain] …", complete=one_of(*ALLOWED))
