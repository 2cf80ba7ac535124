"""List checkpoints of the files, or go back to one."""

from hermes.config.sections import checkpoints as checkpoints_section
from hermes.config.values import plain
from hermes.context.checkpoints import CheckpointError, CheckpointLimits, Checkpoints
from hermes.context.checkpoints.rollback import rollback
from hermes.errors import UserError
from hermes.host.command import CommandCall, CommandResult, SlashCommand
from hermes.runtime.setup.process import shared

OFF = (
    "No snapshots of whole folders are taken: start with --checkpoints, or hermes config set checkpoints.enabled true. "
    "/rewind takes back what Hermes changed."
)
STAYS = "The conversation stays as it is; /undo takes the last exchange back as well."


async def run(call: CommandCall) -> CommandResult:
    session, words = call.session, call.words
    section = session.settings.of(checkpoints_section.Section)
    limits = CheckpointLimits.of(plain(section))
    kept = Checkpoints(session.settings.home, shared.supervisor, shared.pool.run, limits, shared.clock.now)
    try:
        told = await rollback(kept, session.cwd, words)
    except CheckpointError as error:
        raise UserError(str(error)) from error
    is_set = bool((session.settings.tree.get("checkpoints") or {}).get("enabled"))
    is_off = not words and not (is_set or session.asked.checkpoints)
    return CommandResult(
        text=told.text,
        form="diff" if words.startswith("diff") else "lines",
        note=OFF if is_off else STAYS if told.restored is not None else "",
    )


COMMAND = SlashCommand(run=run, args="[N [FILE] | diff N]", when_busy=False)
