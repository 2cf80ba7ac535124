"""What the model is told about the mode that its session works in, and what plan mode keeps from it."""

from typing import Final

from hermes.runtime.call_gate import REFUSED
from hermes.runtime.context import CallContext
from hermes.tools.approval.mode_verdict import PLAN, PLANNING
from hermes.work_mode import WorkModeName

WORDS: Final[dict[WorkModeName, str]] = {
    "edits": "",
    "ask": "[Mode: ask. The person is shown each edit of a file and decides whether it is made.]",
    "plan": (
        "[Mode: plan. Change nothing: every write and every command with an effect is refused. Look, then answer with "
        "a plan: what you would change, where, in which order, and how you would check it. The person ends this mode.]"
    ),
}
_LEFT: Final[dict[WorkModeName, str]] = {
    "plan": "[Plan mode is over: the person agreed, and changes may be made.]",
    "ask": "[Mode: edits. Files of the workspace may be changed without asking first.]",
}


def change_words(before: WorkModeName, now: WorkModeName) -> str:
    """What there is to say about the mode of this message, and that it was another before."""
    return WORDS[now] or _LEFT.get(before, "")


async def refused_in_plan(call: CallContext) -> str:
    """Why a call does not run in plan mode: its tool may change something, and no gate would stop it."""
    call.details[REFUSED] = {"by": "policy", "rule": PLAN, "scope": ""}
    return PLANNING
