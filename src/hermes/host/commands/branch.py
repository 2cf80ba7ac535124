"""Go on in a copy of this session; the original stays as it is."""

from hermes.host.command import CommandCall, CommandResult, SessionTarget, SlashCommand


async def run(call: CommandCall) -> CommandResult:
    old, new = call.session.session_id, await call.session.branch(call.words)
    return CommandResult(
        text=f"You are in a copy now, {new}; the original is {old}.",
        data={"session_id": new, "parent": old},
        goes_to=SessionTarget(session_id=new, is_copy=True),
    )


COMMAND = SlashCommand(run=run, args="[TITLE]", aliases=("fork",), when_busy=False)
