"""Tell what this session used and cost, and the last days."""

from hermes.host.command import CommandCall, CommandResult, SlashCommand


async def run(call: CommandCall) -> CommandResult:
    spent, words = call.session.figures, call.words
    price = "an unknown price" if spent.cost_usd is None else f"${spent.cost_usd:.4f}"
    return CommandResult(
        text=f"This session: {spent.read} tokens read, {spent.written} written, {price}.",
        screen=await call.hermes("usage", "--days", words if words.isdecimal() and int(words) else "30"),
        data={"read": spent.read, "written": spent.written, "cost_usd": spent.cost_usd},
    )


COMMAND = SlashCommand(run=run, args="[DAYS]")
