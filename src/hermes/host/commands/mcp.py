"""Show the MCP servers of this session, and what they are doing."""

from hermes.host.command import CommandCall, CommandResult, SlashCommand


async def run(call: CommandCall) -> CommandResult:
    facts = await call.session.agent.amcp_servers()
    if not facts:
        return CommandResult(text="No MCP server is configured. Add one with: hermes mcp add", data={"servers": []})
    lines = [
        f"{one['name']}: {one['state']}, {one['tools']} tools, about {one['tokens']} tokens"
        + (f" ({one['why']})" if one["why"] else "")
        for one in facts
    ]
    return CommandResult(text="\n".join(lines), form="lines", data={"servers": facts})


COMMAND = SlashCommand(run=run)
