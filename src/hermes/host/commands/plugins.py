"""Show the plugins there are; info NAME, enable NAME, disable NAME."""

from hermes.errors import UserError
from hermes.host.command import CommandCall, CommandResult, SlashCommand, one_of, words_of

ALLOWED = ("list", "info", "enable", "disable")


async def run(call: CommandCall) -> CommandResult:
    parts = words_of(call.words) or ["list"]
    if parts[0] not in ALLOWED:
        raise UserError(f"/plugins takes {', '.join(ALLOWED)}; the rest is in: hermes plugins")
    more = ("--yes",) if parts[0] == "enable" else ()
    note = "It acts in the next session." if parts[0] in ("enable", "disable") else ""
    return CommandResult(screen=await call.hermes("plugins", *parts, *more), note=note)


COMMAND = SlashCommand(run=run, args="[list|info|enable|disable] …", complete=one_of(*ALLOWED))
