"""List the toolsets and what is in them."""

from pathlib import Path

from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash
from hermes.surfaces.cli.toolview import report


async def run(chat: Chat, words: str) -> None:
    found = await chat.in_thread(report, chat.cli.home, chat.settings.mapping, Path(chat.cwd))
    offered = {one.name for one in found.tools if one.state == "offered"}
    for name in found.toolset_names():
        if words and words not in name:
            continue
        members = found.resolve([name])
        mark = "✓" if members and offered.issuperset(members) else "·"
        chat.face.write(chat.painter.line(f"{mark} {name}: {', '.join(members) or 'empty'}"))


COMMAND = Slash(run=run, args="[NAME]")
