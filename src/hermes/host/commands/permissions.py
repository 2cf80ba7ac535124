"""Tell what is asked and what is not, or change the mode: edits, ask, plan."""

from hermes.config.sections.approvals import Section as Approvals
from hermes.config.sections.terminal import Section as Terminal
from hermes.host.command import CommandCall, CommandResult, SlashCommand, one_of
from hermes.work_mode import WORK_MODES

MEANS = {
    "edits": "files of the workspace are changed; what is dangerous is asked",
    "ask": "each edit is asked about first, with its diff",
    "plan": 'nothing is changed; "go" leaves it',
}


async def run(call: CommandCall) -> CommandResult:
    session = call.session
    if call.words:
        session.work_mode = call.words
    approvals, terminal = session.settings.of(Approvals), session.settings.of(Terminal)
    rows = (
        ("mode", f"{session.work_mode}: {MEANS[session.work_mode]}"),
        ("questions", f"approvals.mode is {approvals.mode}; a question waits {approvals.timeout:g} s, then it is a no"),
        ("rules", f"{len(approvals.rules)} of your own (approvals.rules), besides the built-in ones"),
        ("border", f"terminal.sandbox is {terminal.sandbox}; /sandbox shows what commands may touch"),
        ("granted", "/approvals lists what you allowed, and takes it back"),
    )
    return CommandResult(sections=(("", rows),), data={"work_mode": session.work_mode})


COMMAND = SlashCommand(run=run, args="[edits|ask|plan]", complete=one_of(*WORK_MODES))
