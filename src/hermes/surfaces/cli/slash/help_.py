"""List the commands and keys, or explain one command."""

from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.markup import folded
from hermes.surfaces.cli.interactive.slashes import SLASHES, Slash, find
from hermes.surfaces.cli.output import padded

KEYS = (
    ("Enter", "send; while a turn runs, wait in line (see /busy)"),
    ("Alt-Enter, Ctrl-J", "a new line"),
    ("Tab", "complete a command, a path or an @ reference"),
    ("Up", "what was typed before; while messages wait, edit the last"),
    ("Esc", "stop the turn; at a question: no"),
    ("Ctrl-C", "stop the turn; twice leaves"),
    ("Ctrl-D", "leave"),
    ("Ctrl-V, Alt-V", "add the picture that is in the clipboard"),
    ("Ctrl-G", "write in $EDITOR; also Ctrl-X Ctrl-E"),
    ("Ctrl-L, Ctrl-Z", "draw anew; suspend"),
)
REFERENCES = (
    "@file:PATH  @folder:PATH  @diff  @staged  @git:N",
    "@url:ADDRESS  @skill:NAME, or /NAME of a skill",
    "the path of a picture adds the picture",
)
WIDTH = 17


async def run(chat: Chat, words: str) -> None:
    if words:
        name = find(words.removeprefix("/"), tuple(chat.quick_commands))
        if name in SLASHES.names():
            slash = SLASHES.load(name)
            also = f" (also {', '.join(f'/{one}' for one in slash.aliases)})" if slash.aliases else ""
            chat.say(f"/{name} {slash.args}".rstrip() + f"{also}\n  {SLASHES.summary(name)}")
            return
    rows = [(f"/{name}", SLASHES.summary(name)) for name in SLASHES.names()]
    rows += [(f"/{name}", one.command or one.target) for name, one in chat.quick_commands.items()]
    for heading, lines in (("Commands", rows), ("Keys", list(KEYS))):
        chat.say(heading, "bold")
        for head, told in lines:
            first, *more = folded(told, max(20, chat.painter.width - WIDTH - 4))
            chat.say(f"  {padded(head, WIDTH)}  {first}")
            for row in more:
                chat.say(f"  {padded('', WIDTH)}  {row}")
    chat.say("In a message", "bold")
    for reference in REFERENCES:
        chat.say(f"  {reference}")
    chat.say("/help COMMAND tells more about one.", "dim")


COMMAND = Slash(run=run, args="[COMMAND]", aliases=("commands", "?"))
