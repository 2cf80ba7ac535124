"""Hooks: policies, observers and transforms of the session's bus, and the user's own programs on it."""

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from hermes.confinement.policy import ConfinedEnvironment, Confinement
from hermes.programs import split_path
from hermes.runtime.parts import Joining, Part, TurnFacts
from hermes.seams import Environment, HookBus
from hermes.tools.environments.command_env import scrubbed
from hermes.tools.hooks import AFTER, BEFORE, CallFacts, Hooks, nobody_listens, refusal, told
from hermes.types import Content

if TYPE_CHECKING:
    from hermes.runtime.context import CallContext


class CallHooks(Part):
    """Puts the bus between the kernel and each call. A policy that fails denies, by the name of its owner."""

    limit_s = None  # each hook has a limit of its own, and the bus keeps it

    def __init__(self, bus: HookBus) -> None:
        self._bus = bus

    @classmethod
    def join(cls, agent: Joining) -> "CallHooks":
        bus, settings = agent.services.hooks, agent.settings
        if "hooks" in settings.tree and isinstance(bus, Hooks):
            from hermes.extensions.shell_hooks import HookPlace, join  # for who has hooks

            environment = agent.services.environment
            # A hook runs outside the sandbox: what it calls by name is not looked for where commands can write.
            search = split_path(settings.environ, environment.cwd)
            place = HookPlace(
                supervisor=lambda: agent.process.supervisor,
                env={**scrubbed(settings.environ), "PATH": search.own},
                cwd=lambda: environment.cwd,
                session_id=agent.session_id,
                confinement=lambda: _confinement(environment),
            )
            join(bus, settings, place)
        return cls(bus)

    def context(self, turn: TurnFacts) -> Awaitable[str] | None:
        if nobody_listens(self._bus, ("pre_llm_call",)):
            return None
        payload = {
            "session_id": turn.session_id,
            "user_message": turn.said,
            "conversation_history": turn.history,
            "is_first_turn": len(turn.history) == 1,
            "model": turn.model,
        }
        return self._bus.transform("pre_llm_call", "", payload)

    def refusal(self, call: "CallContext") -> Awaitable[str | None] | None:
        return None if nobody_listens(self._bus, BEFORE) else refusal(self._bus, _facts(call), call.asked.rules)

    def result(self, call: "CallContext", content: Content, duration_ms: float) -> Awaitable[Content] | None:
        return None if nobody_listens(self._bus, AFTER) else told(self._bus, _facts(call), content, duration_ms)


def _facts(call: "CallContext") -> CallFacts:
    return CallFacts(
        name=call.asked.name,
        args=call.asked.args,
        task_id=call.task_id,
        session_id=call.session_id,
        tool_call_id=call.call_id,
    )


part = CallHooks


async def _confinement(environment: Environment) -> Confinement | None:
    return await environment.confinement() if isinstance(environment, ConfinedEnvironment) else None
