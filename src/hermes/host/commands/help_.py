"""List the commands and keys, or explain one command."""

from collections.abc import Iterable

from hermes.host.command import (
    COMMANDS,
    CommandCall,
    CommandResult,
    SlashCommand,
    available,
    find,
    plugin_commands,
    quick_commands,
)
from hermes.host.conversation import CommandScene

REFERENCES = (
    "@file:PATH  @folder:PATH  @diff  @staged  @git:N",
    "@url:ADDRESS  @skill:NAME, or /NAME of a skill",
    "the path of a picture adds the picture",
)


async def run(call: CommandCall) -> CommandResult:
    own, theirs = quick_commands(call.session), plugin_commands(call.session)
    if call.words:
        name = find(call.words.removeprefix("/"), (*own, *theirs))
        if name in theirs and name not in own:
            plugin, offer = theirs[name]
            return CommandResult(text=f"/{name} {offer.args_hint}".rstrip() + f"\n  {offer.description} ({plugin.key})")
        if name in COMMANDS.names():
            command = COMMANDS.load(name)
            also = f" (also {', '.join(f'/{one}' for one in command.aliases)})" if command.aliases else ""
            head = f"/{name} {command.args}".rstrip()
            return CommandResult(text=f"{head}{also}\n  {COMMANDS.summary(name)}")
    rows = [(f"/{name}", COMMANDS.summary(name)) for name in available(call.surface.kind)]
    rows += [(f"/{name}", one.command or one.target) for name, one in own.items()]
    rows += [(f"/{name}", offer.description) for name, (_, offer) in theirs.items() if name not in own]
    sections = [("Commands", tuple(rows))]
    if call.surface.keys:
        sections.append(("Keys", call.surface.keys))
    sections.append(("In a message", tuple((reference, "") for reference in REFERENCES)))
    return CommandResult(
        sections=tuple(sections), note="/help COMMAND tells more about one.", data={"commands": dict(rows)}
    )


def _names(_session: CommandScene, begun: str) -> Iterable[str]:
    return [name for name in COMMANDS.names() if name.startswith(begun.removeprefix("/"))]


COMMAND = SlashCommand(run=run, args="[COMMAND]", aliases=("commands", "?"), complete=_names)
