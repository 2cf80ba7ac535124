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

_UNGATED: Final = frozenset({"memory", "skill_manage"})  # built-in tools that write and do not ask the gate


def change_words(before: WorkModeName, now: WorkModeName) -> str:
    """What there is to say about the mode of this message, and that it was another before."""
    return WORDS[now] or _LEFT.get(before, "")


async def refused_in_plan(call: CallContext) -> str | None:
    """Why a call must not run in plan mode, when it is of a tool that changes something and no gate stops it.

    What comes from elsewhere may do anything, unless it says that it only reads. MCP calls ask the gate.
    """
    name, view = call.asked.name, call.turn.tools
    found = getattr(view, "find", lambda _name: None)(name)
    origin = found.origin if found is not None else "code"
    if call.asked.rules.read_only or origin == "mcp" or (origin == "builtin" and name not in _UNGATED):
        return None
    effects = view.effects(name, call.asked.args, call)
    if not effects.writes and not effects.barrier:
        return None
    call.details[REFUSED] = {"by": "policy", "rule": PLAN, "scope": ""}
    return PLANNING
