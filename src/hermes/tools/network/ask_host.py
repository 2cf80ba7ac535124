"""Ask about a host through the session's gate, in the name of the command that is running."""

from msgspec import Struct

from hermes.scope import TurnScope
from hermes.seams import Action, Gate
from hermes.tools.network.host_desk import HostAnswer
from hermes.tools.network.local_ports import SERVICES
from hermes.tools.network.wish import HostWish

NETWORK_TOOL = "network"  # by this name decisions about hosts are found in the record
_LASTING = ("session", "always", "deny")
_MOST_COMMAND = 200


class NetworkCall(Struct, frozen=True):
    """The call in whose name questions are asked: its gate, what it was allowed to do, and its time."""

    gate: Gate
    action: Action
    scope: TurnScope

    async def ask(self, wish: HostWish) -> HostAnswer:
        """The person's word. Without a call there is nobody to ask."""
        if self.scope.state in ("done", "failed", "cancelled", "expired"):
            return HostAnswer(allowed=False, lasts="call", why="it needs the user's yes, and its call is over")
        decision = await self.gate.decide(question(wish, self.action), self.scope)
        is_lasting = decision.rule == "grant" or (decision.decided_by == "person" and decision.scope in _LASTING)
        why = "" if decision.allowed else decision.reason or "it was not allowed"
        return HostAnswer(allowed=decision.allowed, lasts="session" if is_lasting else "call", why=why)


def question(wish: HostWish, action: Action) -> Action:
    """The action that the gate decides about: one host, and who wants it for what."""
    who = f"{wish.who or 'a program'} wants to connect"
    if wish.kind == "local":
        who += f" to {SERVICES.get(wish.port, 'a service')} on this machine"
    sends = f"; it sends data: {wish.sends}" if wish.sends else ""
    place = f"[{wish.host}]:{wish.port}" if ":" in wish.host else f"{wish.host}:{wish.port}"
    return Action(
        kind="network",
        tool=NETWORK_TOOL,
        text=place,
        cwd=action.cwd,
        backend=action.backend,
        route=action.route,
        session_id=action.session_id,
        task_id=action.task_id,
        details={"reach": wish.kind, "host": wish.host, "why": f"{who}{sends}", "command": action.text[:_MOST_COMMAND]},
    )
