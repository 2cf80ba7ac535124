"""List what was approved, take it back (revoke ID), or tell the newest decisions (why)."""

from hermes.errors import UserError
from hermes.host.command import CommandCall, CommandResult, SlashCommand, one_of, words_of


async def run(call: CommandCall) -> CommandResult:
    words = words_of(call.words) or ["list"]
    if words[0] not in ("list", "revoke", "why"):
        raise UserError("say /approvals, /approvals revoke ID, or /approvals why")
    if words == ["revoke"]:
        raise UserError("name what to take back by its id; /approvals lists them")
    own = ["--session", call.session.session_id] if words == ["why"] else []
    note = "" if words[0] != "list" else "/approvals revoke ID takes one back, /approvals why tells the last decisions."
    return CommandResult(screen=await call.hermes("approvals", *words, *own), note=note)


COMMAND = SlashCommand(run=run, args="[revoke ID | why]", complete=one_of("list", "revoke", "why"))
