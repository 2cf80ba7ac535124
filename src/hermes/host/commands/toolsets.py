"""List the toolsets and what is in them."""

from pathlib import Path

from hermes.host.command import CommandCall, CommandResult, SlashCommand
from hermes.host.tool_report import report

SURFACES = "hermes-"  # how the names of those sets begin


async def run(call: CommandCall) -> CommandResult:
    session = call.session
    found = await session.in_thread(report, session.settings.home, session.settings.mapping, Path(session.cwd))
    offered = {one.name for one in found.tools if one.state == "offered"}
    words = call.words.split()
    wanted, is_all = " ".join(word for word in words if word != "--all"), "--all" in words
    members = {name: sorted(found.resolve([name])) for name in found.toolset_names() if wanted in name}
    if not is_all and not wanted:  # what is here; the sets of whole surfaces repeat it
        members = {
            name: tools
            for name, tools in members.items()
            if offered.intersection(tools) and not name.startswith(SURFACES)
        }
    lines = [_line(name, tools, offered, is_all=is_all) for name, tools in members.items() if tools]
    empty = [name for name, tools in members.items() if not tools]
    note = "/tools says why one is not offered" if is_all or wanted else "/toolsets --all: those of surfaces, too"
    if empty and is_all:
        note += f"\nWithout tools in this version: {', '.join(empty)}"
    return CommandResult(text="\n".join(lines), form="lines", note=note, data={"toolsets": members})


def _line(name: str, tools: list[str], offered: set[str], *, is_all: bool) -> str:
    """A toolset with the tools of it that the model is offered; how many of how many."""
    here = tools if is_all else [tool for tool in tools if tool in offered]
    missing = len(tools) - len(offered.intersection(tools))
    share = f" ({len(tools) - missing} of {len(tools)} offered)" if missing else ""
    return f"{'·' if missing else '✓'} {name}{share}: {', '.join(here) or 'none'}"


COMMAND = SlashCommand(run=run, args="[NAME] [--all]")
