"""Show the newest log records of this session."""

from hermes.host.command import CommandCall, CommandResult, SlashCommand


async def run(call: CommandCall) -> CommandResult:
    count = call.words if call.words.isdecimal() else "20"
    screen = await call.hermes("logs", "--lines", count, "--session", call.session.session_id)
    return CommandResult(screen=screen, note="" if screen.strip() else "Nothing was logged in this session.")


COMMAND = SlashCommand(run=run, args="[LINES]")
