"""Show or change settings: show, get KEY, set KEY VALUE, explain KEY."""

from hermes.errors import UserError
from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash, show_command, words_of

ALLOWED = ("show", "get", "set", "unset", "path", "check", "explain")


async def run(chat: Chat, words: str) -> None:
    parts = words_of(words) or ["show"]
    if parts[0] not in ALLOWED:
        raise UserError(f"/config takes {', '.join(ALLOWED)}")
    await show_command(chat, "config", *parts)
    if parts[0] in ("set", "unset"):
        chat.say("It acts when hermes is started again; /model, /reasoning and /busy act at once.", "dim")


COMMAND = Slash(run=run, args="[show|get|set|explain] …")
