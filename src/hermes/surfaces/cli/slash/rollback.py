"""List checkpoints of the files, or go back to one."""

from hermes.config.sections import checkpoints as checkpoints_section
from hermes.config.values import plain
from hermes.context.checkpoints import CheckpointError, CheckpointLimits, Checkpoints
from hermes.context.checkpoints.rollback import rollback
from hermes.errors import UserError
from hermes.runtime.setup.process import shared
from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash


async def run(chat: Chat, words: str) -> None:
    section = chat.settings.of(checkpoints_section.Section)
    kept = Checkpoints(
        chat.cli.home, shared.supervisor, shared.pool.run, CheckpointLimits.of(plain(section)), shared.clock.now
    )
    try:
        told = await rollback(kept, chat.cwd, words)
    except CheckpointError as error:
        raise UserError(str(error)) from error
    if words.startswith("diff"):
        chat.face.write(chat.painter.diff(told.text))
    else:
        chat.face.write("".join(chat.painter.line(line) for line in told.text.splitlines()))
    if not words and not (section.enabled or chat.wish.checkpoints):
        chat.say("Checkpoints are off: start with --checkpoints, or hermes config set checkpoints.enabled true", "dim")
    if told.restored is not None:
        chat.say("The conversation stays as it is; /undo takes the last exchange back as well.", "dim")


COMMAND = Slash(run=run, args="[N [FILE] | diff N]", when_busy=False)
