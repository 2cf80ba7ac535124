"""Ask about a host through the session's gate, in the name of the command or background process that wants it."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager

from msgspec import Struct, structs

from hermes.scope import TurnScope
from hermes.seams import Action, Decision, Gate
from hermes.tools.environments.background import BackgroundRecord
from hermes.tools.network.host_desk import DecidedBy, HostAnswer
from hermes.tools.network.local_ports import SERVICES
from hermes.tools.network.wish import HostWish, line_of
from hermes.tools.supervisor.threads import RunBlocking

NETWORK_TOOL = "network"  # by this name decisions about hosts are found in the record
_LASTING = ("session", "always", "deny")
_MOST_COMMAND = 200
_MOST_CALLS = 64
_MOST_TOLD = 60
_NO_CALL = "it needs the user's yes, and no call runs in which to ask"
_NOBODY = "it needs the user's yes, and nobody can be asked here"


class NetworkCall(Struct, frozen=True):
    """A call within which questions can be asked: its gate, what it was allowed to do, and its time."""

    gate: Gate
    action: Action
    scope: TurnScope

    @property
    def is_over(self) -> bool:
        return self.scope.state in ("done", "failed", "cancelled", "expired")

    async def ask(self, wish: HostWish, action: Action | None = None) -> HostAnswer:
        """The person's word on what `action` wants, which is this call's own unless another is named."""
        if self.is_over:
            return HostAnswer(allowed=False, lasts="call", why=_NO_CALL)
        decision = await self.gate.decide(question(wish, action or self.action), self.scope)
        by = _decided_by(decision)
        is_lasting = decision.rule == "grant" or (by == "person" and decision.scope in _LASTING)
        why = "" if decision.allowed else _why_not(decision)
        return HostAnswer(
            allowed=decision.allowed,
            lasts="session" if is_lasting else "call",
            why=why,
            by=by,
            was_asked=by == "person" or decision.scope == "timeout",
        )


class HostQuestions:
    """Who asks about the hosts of one session: the newest call that still runs, for itself or a background process."""

    def __init__(
        self,
        pause: Callable[[], AbstractContextManager[None]],
        running: Callable[[], Awaitable[Sequence[BackgroundRecord]]],
        run_blocking: RunBlocking,
    ) -> None:
        self._pause = pause  # the time of commands stands still in it
        self._running = running  # background processes
        self._run_blocking = run_blocking
        self._calls: list[NetworkCall] = []

    def begin(self, call: NetworkCall) -> None:
        """From now on questions can be asked within this call, too."""
        self._calls = [each for each in self._calls if not each.is_over][-_MOST_CALLS:]
        self._calls.append(call)

    async def ask(self, wish: HostWish) -> HostAnswer:
        """The person's word. Without a call that runs there is nobody to ask."""
        running = await self._running()
        owner = await self._owner(wish.pid, running)
        call = next((each for each in reversed(self._calls) if not each.is_over), None)
        if call is None:
            why = _NO_CALL if self._calls else _NOBODY
            answer = HostAnswer(allowed=False, lasts="call", why=why)
        elif owner is not None:
            action = _action_of(owner, call.action)
            named = f"{wish.who or 'a program'} (background process {owner.id})"
            with self._pause():
                answer = await call.ask(structs.replace(wish, who=named), action)
        else:
            # A socket that nobody holds any more may be anybody's: then no command is named that may not be it.
            action = structs.replace(call.action, text="") if running and not wish.pid else call.action
            with self._pause():
                answer = await call.ask(wish, action)
        return answer if owner is None else _told_of(answer, owner)

    async def _owner(self, pid: int, running: Sequence[BackgroundRecord]) -> BackgroundRecord | None:
        if not pid or not running:
            return None
        above = set(await self._run_blocking(line_of, pid))
        return next((each for each in running if each.pid in above), None)


def question(wish: HostWish, action: Action) -> Action:
    """The action that the gate decides about: one host, and who wants it for what."""
    who = f"{wish.who or 'a program'} wants to connect"
    if wish.kind == "local":
        who += f" to {SERVICES.get(wish.port, 'a service')} on this machine"
    sends = f"; it sends data: {wish.sends}" if wish.sends else ""
    told = {"reach": wish.kind, "host": wish.host, "why": f"{who}{sends}", "command": action.text[:_MOST_COMMAND]}
    return Action(
        kind="network",
        tool=NETWORK_TOOL,
        text=wish.place,
        cwd=action.cwd,
        backend=action.backend,
        route=action.route,
        session_id=action.session_id,
        task_id=action.task_id,
        details=told if wish.may_ask else {**told, "is_unasked": True},
    )


def _why_not(decision: Decision) -> str:
    if decision.decided_by == "person":
        return "the user said no; do not look for another way there"
    if decision.scope == "timeout":
        return "it needs the user's yes, and nobody answered"
    if decision.decided_by == "nobody":
        return "it needs the user's yes, and nobody is here to give it"
    if decision.rule == "border":
        return "it needs the user's yes, and asking is switched off"
    return decision.reason or "it was not allowed"


def _decided_by(decision: Decision) -> DecidedBy:
    if decision.decided_by == "person":
        return "person"
    # With questions switched off the border stands, and no rule has said anything about this host.
    is_open = decision.decided_by == "nobody" or decision.rule == "border"
    return "nobody" if is_open else "rule"


def _action_of(owner: BackgroundRecord, call: Action) -> Action:
    """What a background process was started by, asked about on the way of the call that can ask."""
    return structs.replace(call, text=owner.order.command, cwd=owner.order.cwd)


def _told_of(answer: HostAnswer, owner: BackgroundRecord) -> HostAnswer:
    words = " ".join(owner.order.command.split())
    short = words if len(words) <= _MOST_TOLD else f"{words[: _MOST_TOLD - 1]}…"
    return structs.replace(answer, who=f"background process {owner.id} ({short})")
