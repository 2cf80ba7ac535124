"""What the session's mode, and the person's own hand, make of a verdict. Pure."""

from msgspec import structs

from hermes.seams import Action
from hermes.tools.approval.border import BorderView
from hermes.tools.approval.decide import Verdict
from hermes.tools.approval.effects_model import Analysis
from hermes.tools.approval.only_reads import only_reads
from hermes.tools.web.web_access import is_ordinary
from hermes.work_mode import WorkModeName

ASKED_BY_MODE = "mode ask"
PLAN = "mode plan"
PLANNING = (
    "Plan mode: nothing is changed now. Read what you need, then tell the person what you would do, step by step; they "
    "leave plan mode when they agree."
)
_CHANGES = frozenset({"write", "delete", "project_env"})


def in_mode(
    mode: WorkModeName, verdict: Verdict, action: Action, analysis: Analysis, border: BorderView | None
) -> Verdict:
    """`verdict` as the mode leaves it. A denial stays one, and what a person types is their own."""
    if verdict.outcome == "deny":
        return verdict
    if action.route == "person":
        return Verdict(outcome="allow", reason="typed by the person", rule="person", effects=(), outside=True)
    if mode == "plan":
        return _planning(verdict, action, analysis, border)
    if mode == "ask" and action.kind == "write" and "diff" in action.details and verdict.outcome == "allow":
        if verdict.rule == "mode":  # asking is switched off
            return verdict
        return Verdict(
            outcome="ask", reason="an edit", rule=ASKED_BY_MODE, effects=verdict.effects, scopes=("once", "session")
        )
    return verdict


def _planning(verdict: Verdict, action: Action, analysis: Analysis, border: BorderView | None) -> Verdict:
    refused = Verdict(outcome="deny", reason=PLANNING, rule=PLAN, effects=verdict.effects)
    if verdict.outcome != "allow" or verdict.outside or action.route in ("background", "pty"):
        return refused
    if action.kind == "network":
        return verdict if is_ordinary(action) else refused
    if action.kind == "tool":
        return verdict if action.details.get("reads_only") else refused
    if action.kind == "write":
        return refused
    if action.kind == "command" and only_reads(analysis):
        return structs.replace(verdict, read_only=True)
    # What else it runs can do is known only where something holds it.
    is_held = border is not None and border.confinement.level == "full"
    if not is_held or any(effect.kind in _CHANGES and effect.path_class != "temp" for effect in analysis.effects):
        return refused
    return structs.replace(verdict, read_only=True)
