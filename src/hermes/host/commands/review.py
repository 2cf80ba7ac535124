"""Let the model review what is not committed, or what differs from a branch."""

from hermes.host.command import CommandCall, CommandResult, SlashCommand

ASKED = (
    "Review {what}. Read the diff and the code around it. Tell what is wrong or risky first, each with file and line "
    "and how it fails; then what is missing, such as a test. Change nothing, and say so plainly when you find nothing."
)
OWN = "the changes of this work tree that are not committed, new files included"


async def run(call: CommandCall) -> CommandResult:
    await call.session.submit(ASKED.format(what=f"what differs here from {call.words}" if call.words else OWN))
    return CommandResult()


COMMAND = SlashCommand(run=run, args="[BRANCH]")
