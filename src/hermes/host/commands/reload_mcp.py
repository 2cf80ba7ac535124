"""Connect the MCP servers anew and offer what they have now; the prompt's cache begins anew with it."""

from hermes.host.command import CommandCall, CommandResult, SlashCommand


async def run(call: CommandCall) -> CommandResult:
    told = await call.session.agent.areload_mcp()
    return CommandResult(text="\n".join(told), form="lines", data={"told": told})


COMMAND = SlashCommand(run=run, when_busy=False)
