"""The gate of an agent, made when the first action is decided: most turns of a chat decide on none."""

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from hermes.config.sections import approvals as approvals_section
from hermes.config.settings import Settings
from hermes.models.auxiliary import AuxiliaryClient, AuxiliaryQuestion
from hermes.runtime.facade import caller
from hermes.runtime.options import AgentOptions
from hermes.scope import TurnScope
from hermes.seams import Action, Decision, Environment, EventStore, Gate, HookBus
from hermes.tools.calling.pool import DaemonPool

if TYPE_CHECKING:
    from hermes.tools.approval.gate import Ask, Judge
    from hermes.tools.approval.question import ApprovalQuestion


class AgentGate(Struct, frozen=True, kw_only=True, dict=True):
    """`Gate` of an agent: its callback is asked, else whoever listens for its session, else nobody."""

    options: AgentOptions
    settings: Settings
    session_id: str
    pool: DaemonPool
    environment: Environment
    store: EventStore
    auxiliary: AuxiliaryClient
    hooks: HookBus

    def __post_init__(self) -> None:
        if self.settings.of(approvals_section.Section).rules:
            self._gate  # noqa: B018 - a rule that contradicts its examples is told at the start

    def decide(self, action: Action, scope: TurnScope) -> Coroutine[Any, Any, Decision]:
        return self._gate.decide(action, scope)

    @cached_property
    def _gate(self) -> Gate:
        from hermes.tools.approval.contract import asks_nothing, desk  # paid by the first action that is decided
        from hermes.tools.approval.gate_setup import (
            border_of,
            disk_view,
            make_gate,
            makings_of,
            on_call_of,
            with_remotes,
        )

        home, settings, kind, run = self.settings.home, self.settings.mapping, self.environment.kind, self.pool.run
        sight = disk_view(home, settings, kind, self._workspace if kind == "local" else self.environment.cwd)
        link = self.options.parent
        mine = self.options.session.gateway_session_key or self.session_id
        is_off, key = asks_nothing(self.settings.environ), mine if link is None else link.asks_as
        callback = self.options.callbacks.approval_callback
        ask = _ask(callback, run) if callback is not None else desk.queue.ask(key)
        return replace(
            make_gate(home, settings, with_remotes(sight, self.environment), self.store, run),
            ask=ask if link is None else link.asking(ask),
            judge=self._judge,
            is_remote=callback is None,
            tell=self.hooks.observe,
            border=border_of(self.environment),
            makings=makings_of(self.environment),
            work_mode=self.options.tools.work_mode,
            on_call=on_call_of(self.environment),
            is_bypassed=lambda _session: is_off or desk.is_yolo(key) or desk.is_yolo(self.session_id),
        )

    @property
    def _workspace(self) -> str:
        """Where the work was started; a session that comes back may stand elsewhere."""
        launched = self.options.tools.cwd or str(Path.cwd())
        configured = str((self.settings.mapping.get("terminal") or {}).get("cwd") or "")
        return launched if self.options.tools.cwd else str(Path(launched, Path(configured).expanduser()))

    @property
    def _judge(self) -> "Judge | None":
        if self.settings.of(approvals_section.Section).mode != "smart":
            return None
        from hermes.tools.approval.judge import judge_with  # only smart mode needs it

        async def ask_model(system: str, text: str, question: "ApprovalQuestion", scope: TurnScope) -> str:
            asked = AuxiliaryQuestion(
                task="approval", system=system, text=text, session_id=question.action.session_id or None, max_tokens=512
            )
            return await self.auxiliary.ask(asked, scope)

        return judge_with(ask_model)


def _ask(callback: Callable[..., Any], in_pool: Callable[..., Awaitable[Any]]) -> "Ask":
    from hermes.tools.approval.queue import ask_callback

    async def run(function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
        """In a thread of the pool: one that never answers is left behind when the turn is over.

        The thread that waits in `run_conversation` could not be: it would wait with the callback. A Ctrl-C that the
        callback saw is raised there all the same.
        """

        def asked() -> Any:
            try:
                return function(*args, **keywords)
            except KeyboardInterrupt:
                return KeyboardInterrupt

        said = await in_pool(asked)
        if said is KeyboardInterrupt and (waiting := caller.get()) is not None:
            await waiting.call(_stop)
        return said

    return ask_callback(callback, run)


def _stop() -> None:
    raise KeyboardInterrupt
