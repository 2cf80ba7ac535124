"""The gate as one call sees it: what a person's answer took, and a refusal, are noted with the call's result."""

import time

from msgspec import Struct

from hermes.scope import TurnScope
from hermes.seams import Action, Decision, Gate
from hermes.types import JsonObject

ASKED_MS = "asked_ms"
REFUSED = "refused"


class CallGate(Struct, frozen=True):
    """`Gate` that notes in `details` how long a person was waited for, and by what a call was refused."""

    inner: Gate
    details: JsonObject

    async def decide(self, action: Action, scope: TurnScope) -> Decision:
        started = time.monotonic()
        decision = await self.inner.decide(action, scope)
        if decision.decided_by in ("person", "nobody"):
            waited = (time.monotonic() - started) * 1000
            self.details[ASKED_MS] = self.details.get(ASKED_MS, 0.0) + waited
        if not decision.allowed and not action.details.get("runs_again"):  # that one has run, inside the border
            self.details[REFUSED] = {"by": decision.decided_by, "rule": decision.rule, "scope": decision.scope}
        return decision
