"""A gate that asks a person about every command and denies where nobody is there to ask."""

from collections.abc import Callable
from typing import Any

from hermes.ops import ApprovalRecorded
from hermes.scope import TurnScope
from hermes.seams import Action, Decision, EventStore

NOBODY = "This needs a person's approval and nobody is here to give it. Choose a way that does not need it."
DENIED = "The user said no to this. Do not try it in another form; choose another way or ask what they want."


class AskingGate:
    """`Gate` over one callback: `callback(action) -> bool`, called in a thread of its own."""

    def __init__(self, store: EventStore, callback: Callable[[Action], Any] | None, run: Callable[..., Any]) -> None:
        self._store = store
        self._callback = callback
        self._run = run

    async def decide(self, action: Action, scope: TurnScope) -> Decision:
        if action.kind == "write":
            return Decision(allowed=True, rule="workspace-write")
        if self._callback is None:
            decision = Decision(allowed=False, reason=NOBODY, rule="nobody-to-ask", decided_by="nobody")
        else:
            said = bool(await self._run(self._callback, action))
            decision = Decision(allowed=said, reason="" if said else DENIED, rule="asked", decided_by="person")
        await self._store.commit(
            ApprovalRecorded(
                session_id=action.session_id or None,
                route=action.route,
                tool=action.tool,
                action=action.text,
                verdict="allow" if decision.allowed else "deny",
                rule=decision.rule,
                reason=decision.reason,
                decided_by=decision.decided_by,
            )
        )
        return decision
