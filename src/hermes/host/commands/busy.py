"""What a message typed during a turn does: queue, steer or interrupt."""

from hermes.errors import UserError
from hermes.host.command import CommandCall, CommandResult, SlashCommand, one_of
from hermes.state.message_line import MODES, BusyMode

TOLD = {
    "queue": "A message typed during a turn waits for its end.",
    "steer": "A message typed during a turn is told to the model after its current calls.",
    "interrupt": "A message typed during a turn stops it and is next.",
}


async def run(call: CommandCall) -> CommandResult:
    session, words = call.session, call.words
    modes: dict[str, BusyMode] = {mode: mode for mode in MODES}
    if words and words not in modes:
        raise UserError(f"/busy takes {', '.join(modes)}")
    if words:
        session.busy_mode = modes[words]
    return CommandResult(text=TOLD[session.busy_mode], data={"mode": session.busy_mode})


COMMAND = SlashCommand(run=run, args="[queue|steer|interrupt]", complete=one_of(*MODES))
