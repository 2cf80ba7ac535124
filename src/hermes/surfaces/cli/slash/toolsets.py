"""List the toolsets and what is in them."""

from pathlib import Path

from hermes.host.tool_report import report
from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash


async def run(chat: Chat, words: str) -> None:
    found = await chat.in_thread(report, chat.cli.home, chat.settings.mapping, Path(chat.cwd))
    offered = {one.name for one in found.tools if one.state == "offered"}
    members = {name: found.resolve([name]) for name in found.toolset_names() if words in name}
    for name, tools in members.items():
        if tools:
            mark = "✓" if offered.issuperset(tools) else "·"
            chat.face.write(chat.painter.line(f"{mark} {name}: {', '.join(sorted(tools))}"))
    chat.face.write(chat.painter.line("✓ all of it is offered here, · not all of it", "dim"))
    if empty := [name for name, tools in members.items() if not tools]:
        chat.face.write(chat.painter.line(f"Without tools in this version: {', '.join(empty)}", "dim"))


COMMAND = Slash(run=run, args="[NAME]")
