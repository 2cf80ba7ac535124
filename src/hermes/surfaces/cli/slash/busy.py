"""What a message typed during a turn does: queue, steer or interrupt."""

from typing import get_args

from hermes.errors import UserError
from hermes.state.message_line import BusyMode
from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash

TOLD = {
    "queue": "A message typed during a turn waits for its end.",
    "steer": "A message typed during a turn is told to the model after its current calls.",
    "interrupt": "A message typed during a turn stops it and is next.",
}


async def run(chat: Chat, words: str) -> None:
    modes: dict[str, BusyMode] = {mode: mode for mode in get_args(BusyMode)}
    if words and words not in modes:
        raise UserError(f"/busy takes {', '.join(modes)}")
    if words:
        chat.busy_mode = modes[words]
    chat.say(TOLD[chat.busy_mode])


COMMAND = Slash(run=run, args="[queue|steer|interrupt]")
