"""Look and plan without changing anything; "go" carries the plan out."""

from hermes.host.command import CommandCall, CommandResult, SlashCommand

HOW = 'Plan mode: nothing is changed until you say "go".'


async def run(call: CommandCall) -> CommandResult:
    call.session.work_mode = "plan"
    if call.words:
        await call.session.submit(call.words)
    return CommandResult(note=HOW, data={"work_mode": "plan"})


COMMAND = SlashCommand(run=run, args="[WHAT]")
