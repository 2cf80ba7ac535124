"""List the toolsets and what is in them."""

from pathlib import Path

from hermes.host.command import CommandCall, CommandResult, SlashCommand
from hermes.host.tool_report import report


async def run(call: CommandCall) -> CommandResult:
    session = call.session
    found = await session.in_thread(report, session.settings.home, session.settings.mapping, Path(session.cwd))
    offered = {one.name for one in found.tools if one.state == "offered"}
    members = {
        name: sorted(found.resolve([name]))
        for name in found.toolset_names()
        if call.words.replace("--all", "").strip() in name
    }
    is_all = "--all" in call.words.split()
    wanted = call.words.replace("--all", "").strip()
    members = {name: tools for name, tools in members.items() if is_all or wanted or offered.intersection(tools)}
    lines = [
        f"{'✓' if offered.issuperset(tools) else '·'} {name}: {', '.join(tools)}"
        for name, tools in members.items()
        if tools
    ]
    empty = [name for name, tools in members.items() if not tools]
    note = "✓ all of it is offered here, · not all of it"
    if not is_all:
        note += "; /toolsets --all names those of other versions, too"
    if empty and is_all:
        note += f"\nWithout tools in this version: {', '.join(empty)}"
    return CommandResult(text="\n".join(lines), form="lines", note=note, data={"toolsets": members})


COMMAND = SlashCommand(run=run, args="[NAME] [--all]")
