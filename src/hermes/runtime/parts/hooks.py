"""Hooks: policies, observers and transforms of plugins on the session's bus, and the user's own programs."""

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from hermes.runtime.parts import Joining, Part, TurnFacts
from hermes.seams import HookBus
from hermes.tools.hooks import AFTER, BEFORE, Hooks, nobody_listens
from hermes.types import Content

if TYPE_CHECKING:
    from hermes.runtime.context import CallContext


class CallHooks(Part):
    """Puts the bus between the kernel and each call. A policy that fails denies, by the name of its owner."""

    limit_s = None  # each hook has a limit of its own, and the bus keeps it

    def __init__(self, bus: HookBus, platform: str = "", sender_id: str = "") -> None:
        self._bus = bus
        self._platform = platform
        self._sender_id = sender_id
        self._session_id = ""  # of the newest turn
        self._blocked: dict[str, str] = {}  # calls that were refused and whose end is not told yet

    @classmethod
    def join(cls, agent: Joining) -> "CallHooks":
        bus, tree = agent.services.hooks, agent.settings.tree
        if isinstance(bus, Hooks) and ("plugins" in tree or "hooks" in tree):
            from hermes.runtime.setup.hook_setup import listen  # for who has some

            listen(agent, bus)
        return cls(bus, agent.options.session.platform or "cli", agent.options.session.user_id or "")

    def context(self, turn: TurnFacts) -> Awaitable[str] | None:
        self._session_id = turn.session_id
        if nobody_listens(self._bus, ("pre_llm_call", "on_session_start")):
            return None
        from hermes.runtime.call_hooks import words_of  # for who has hooks

        return words_of(self._bus, turn, self._platform, self._sender_id)

    def refusal(self, call: "CallContext") -> Awaitable[str | None] | None:
        if nobody_listens(self._bus, BEFORE):
            return None
        from hermes.runtime.call_hooks import refused  # for who has hooks

        return refused(self._bus, call, self._blocked)

    def result(self, call: "CallContext", content: Content, duration_ms: float) -> Awaitable[Content] | None:
        if nobody_listens(self._bus, AFTER):
            return None
        from hermes.runtime.call_hooks import ended  # for who has hooks

        return ended(self._bus, call, content, duration_ms, self._blocked.pop(call.call_id, None))

    async def session_moved(self, old: str, new: str) -> None:
        self._session_id = new

    async def close(self, *ended: str) -> None:
        if self._session_id:
            about = {"session_id": self._session_id, "platform": self._platform, "reason": "shutdown"}
            await self._bus.observe("on_session_finalize", about)
        if isinstance(self._bus, Hooks):
            await self._bus.close()


part = CallHooks
