"""Show the skills there are; search, stats, view NAME, check, review."""

from hermes.errors import UserError
from hermes.host.command import CommandCall, CommandResult, SlashCommand, one_of, words_of

ALLOWED = ("list", "search", "view", "inspect", "stats", "check", "review")


async def run(call: CommandCall) -> CommandResult:
    parts = words_of(call.words) or ["list"]
    if parts[0] not in ALLOWED:
        raise UserError(f"/skills takes {', '.join(ALLOWED)}; the rest is in: hermes skills")
    return CommandResult(screen=await call.hermes("skills", *parts))


COMMAND = SlashCommand(run=run, args="[list|search|view|stats|check|review] …", complete=one_of(*ALLOWED))
