"""Show or change settings: show, get KEY, set KEY VALUE, explain KEY."""

import shlex

from hermes.errors import UserError
from hermes.surfaces.cli.interactive.bridge import show_command
from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash

ALLOWED = ("show", "get", "set", "unset", "path", "check", "explain")


async def run(chat: Chat, words: str) -> None:
    try:
        parts = shlex.split(words) or ["show"]
    except ValueError as error:
        raise UserError(f"{error}; quote what holds a quote") from error
    if parts[0] not in ALLOWED:
        raise UserError(f"/config takes {', '.join(ALLOWED)}")
    await show_command(chat, "config", *parts)
    if parts[0] in ("set", "unset"):
        chat.say("It acts when hermes is started again; /model, /reasoning and /busy act at once.", "dim")


COMMAND = Slash(run=run, args="[show|get|set|explain] …")
