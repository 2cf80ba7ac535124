"""Hooks: policies, observers and transforms of plugins on the session's bus, and the user's own programs."""

import hashlib
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.confinement.policy import ConfinedEnvironment, Confinement
from hermes.programs import split_path
from hermes.runtime.parts import Joining, Part, TurnFacts
from hermes.seams import Action, Environment, HookBus
from hermes.tools.environments.command_env import scrubbed
from hermes.tools.hooks import (
    AFTER,
    BEFORE,
    ApprovalWish,
    CallEnd,
    CallFacts,
    Hooks,
    nobody_listens,
    refusal,
    told,
)
from hermes.tools.results.tool_result import failure_of
from hermes.types import Content, StatusChanged

if TYPE_CHECKING:
    from hermes.runtime.context import CallContext

PLUGIN_RULE = "plugin_rule:"  # as the gate knows it: `hermes.tools.approval.effects_model`


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
        bus, settings, environment = agent.services.hooks, agent.settings, agent.services.environment
        if "plugins" in settings.tree and isinstance(bus, Hooks):
            from hermes.runtime.setup.plugin_setup import join_hooks, prepare  # for who has plugins

            here = Path(environment.cwd) if environment.kind == "local" else None
            join_hooks(bus, settings, prepare(settings, here))
        if "hooks" in settings.tree and isinstance(bus, Hooks) and not _is_safe_mode(settings.environ):
            from hermes.extensions.shell_hooks import HookPlace, join  # for who has hooks

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
        if isinstance(bus, Hooks):
            parts = agent.services.parts
            bus.tell = lambda line: (parts.tell or parts.untold.append)(StatusChanged("warning", line))
        return cls(bus, agent.options.session.platform or "cli", agent.options.session.user_id or "")

    def context(self, turn: TurnFacts) -> Awaitable[str] | None:
        self._session_id = turn.session_id
        if nobody_listens(self._bus, ("pre_llm_call", "on_session_start")):
            return None
        return self._words(turn)

    async def _words(self, turn: TurnFacts) -> str:
        from hermes.hook_points import LazyView  # for who has hooks

        ids = {"task_id": turn.session_id, "session_id": turn.session_id, "turn_id": turn.turn_id}
        about = {**ids, "model": turn.model, "platform": self._platform}
        if turn.is_new:
            await self._bus.observe("on_session_start", about)
        payload = {
            **about,
            "user_message": turn.said,
            "conversation_history": LazyView.of(turn.history),
            "is_first_turn": len(turn.history) == 1,
            "sender_id": self._sender_id,
        }
        return "\n\n".join(filter(None, map(_context, await self._bus.gather("pre_llm_call", payload))))

    def refusal(self, call: "CallContext") -> Awaitable[str | None] | None:
        return None if nobody_listens(self._bus, BEFORE) else self._refusal(call)

    async def _refusal(self, call: "CallContext") -> str | None:
        async def ask_person(wish: ApprovalWish) -> str | None:
            return await _asked(call, wish)

        reason = await refusal(self._bus, call_facts(call), call.asked.rules, approve=ask_person)
        if reason is not None and not nobody_listens(self._bus, AFTER):
            self._blocked[call.call_id] = reason
        return reason

    def result(self, call: "CallContext", content: Content, duration_ms: float) -> Awaitable[Content] | None:
        if nobody_listens(self._bus, AFTER):
            return None
        blocked = self._blocked.pop(call.call_id, None)
        error = failure_of(content) or "" if blocked is None else ""
        end = CallEnd(content=content, duration_ms=duration_ms, blocked=blocked, error=error)
        return told(self._bus, call_facts(call), end)

    async def session_moved(self, old: str, new: str) -> None:
        self._session_id = new

    async def close(self, *ended: str) -> None:
        if self._session_id:
            about = {"session_id": self._session_id, "platform": self._platform, "reason": "shutdown"}
            await self._bus.observe("on_session_finalize", about)
        if isinstance(self._bus, Hooks):
            await self._bus.close()


def call_facts(call: "CallContext") -> CallFacts:
    """Which call the hooks are told of."""
    return CallFacts(
        name=call.asked.name,
        args=call.asked.args,
        task_id=call.task_id,
        session_id=call.session_id,
        tool_call_id=call.call_id,
        turn_id=call.turn.turn_id,
    )


async def _asked(call: "CallContext", wish: ApprovalWish) -> str | None:
    """Why the call must not run, when a person was asked and said no, or nobody was there."""
    digest = hashlib.sha256(wish.message.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    action = Action(
        kind="tool",
        tool=wish.tool_name,
        text=wish.tool_name,
        cwd=call.environment.cwd,
        backend=call.environment.kind,
        route=call.route,
        session_id=call.session_id,
        task_id=call.task_id,
        details={"rule": f"{PLUGIN_RULE}{wish.rule_key or f'{wish.tool_name}:{digest}'}", "why": wish.message},
    )
    decision = await call.gate.decide(action, call.scope)
    return None if decision.allowed else decision.reason or f"denied: {wish.message}"


def _context(answer: Any) -> str:
    words = answer.get("context") if isinstance(answer, Mapping) else answer
    return words if isinstance(words, str) and words.strip() else ""


def _is_safe_mode(environ: Mapping[str, str]) -> bool:
    return environ.get("HERMES_SAFE_MODE", "").strip().lower() in ("1", "true", "yes", "on")


async def _confinement(environment: Environment) -> Confinement | None:
    return await environment.confinement() if isinstance(environment, ConfinedEnvironment) else None


part = CallHooks
