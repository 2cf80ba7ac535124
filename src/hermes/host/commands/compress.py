"""Sum up what was said so far, to make room; a topic is kept above all else."""

from hermes.host.command import CommandCall, CommandResult, SlashCommand


async def run(call: CommandCall) -> CommandResult:
    was_busy = call.session.is_busy
    call.session.compress(call.words)
    return CommandResult(note="After this turn; /stop ends it now." if was_busy else "")


COMMAND = SlashCommand(run=run, args="[TOPIC]", aliases=("compact",))
