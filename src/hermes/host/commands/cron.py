"""Show and look after scheduled jobs: list, next, history, show, create, pause, resume, run, remove."""

from hermes.errors import UserError
from hermes.host.command import CommandCall, CommandResult, SlashCommand, one_of, words_of

ALLOWED = (
    *("list", "show", "next", "history", "runs", "create", "add", "edit", "run", "pause", "resume"),
    *("remove", "rm", "delete"),
)


async def run(call: CommandCall) -> CommandResult:
    parts = words_of(call.words) or ["list"]
    if parts[0] not in ALLOWED:
        raise UserError(f"/cron takes {', '.join(ALLOWED)}; a scheduler is started with: hermes cron daemon")
    return CommandResult(screen=await call.hermes("cron", *parts))


COMMAND = SlashCommand(
    run=run, args="[list|next|history|show|create|edit|run|pause|resume|remove] …", complete=one_of(*ALLOWED)
)
