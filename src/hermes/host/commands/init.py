"""Let the model write AGENTS.md, the rules of this project."""

from hermes.host.command import CommandCall, CommandResult, SlashCommand

ASKED = (
    "Look through this project and write AGENTS.md in its folder, for whoever works on it next: how it is built, run "
    "and tested, how it is laid out, and which conventions the code keeps. At most a page, only what you have seen. "
    "If there is an AGENTS.md or CLAUDE.md, read it first and keep what is still true."
)


async def run(call: CommandCall) -> CommandResult:
    await call.session.submit(f"{ASKED} {call.words}".strip())
    return CommandResult()


COMMAND = SlashCommand(run=run, args="[MORE WORDS]")
