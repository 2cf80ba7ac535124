"""The gate of an agent, made when the first action is decided: most turns of a chat decide on none."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from hermes.config.sections import approvals as approvals_section
from hermes.config.settings import Settings
from hermes.models import auxiliary
from hermes.models.auxiliary import AuxiliaryClient
from hermes.runtime.facade import caller
from hermes.runtime.options import AgentOptions
from hermes.runtime.setup.process import ProcessParts
from hermes.scope import TurnScope
from hermes.seams import Action, Decision, Environment, EventStore, Gate, HookBus

if TYPE_CHECKING:
    from hermes.tools.approval.gate import Ask, Judge
    from hermes.tools.approval.question import ApprovalQuestion


class Deciding(Struct, frozen=True, kw_only=True):
    """What an agent's gate is made of."""

    options: AgentOptions
    settings: Settings
    session_id: str
    parts: ProcessParts
    environment: Environment
    store: EventStore
    helper: AuxiliaryClient
    hooks: HookBus | None = None


class LazyGate:
    """`Gate` that is put together by its first decision."""

    def __init__(self, make: Callable[[], Gate]) -> None:
        self._make = make
        self._gate: Gate | None = None

    async def decide(self, action: Action, scope: TurnScope) -> Decision:
        if self._gate is None:
            self._gate = self._make()
        return await self._gate.decide(action, scope)


def approval_gate(deciding: Deciding) -> Gate:
    """The gate of an agent: its callback is asked, else whoever listens for its session, else nobody."""
    if deciding.settings.of(approvals_section.Section).rules:
        return _gate(deciding)  # a rule that contradicts its examples is told at the start
    return LazyGate(lambda: _gate(deciding))


def _gate(deciding: Deciding) -> Gate:
    from hermes.tools.approval.contract import asks_nothing, desk  # noqa: PLC0415 - paid by the first action that is decided
    from hermes.tools.approval.gate_setup import GateParts, make_gate  # noqa: PLC0415

    session, is_off = deciding.options.session, asks_nothing(deciding.settings.environ)
    key = session.gateway_session_key or deciding.session_id
    callback = deciding.options.callbacks.approval_callback
    return make_gate(
        GateParts(
            home=deciding.settings.home,
            settings=deciding.settings.mapping,
            environment=deciding.environment,
            workspace=_workspace(deciding),
            store=deciding.store,
            in_thread=deciding.parts.pool.run,
            ask=_ask(callback, deciding.parts.pool.run) if callback is not None else desk.queue.ask(key),
            judge=_judge(deciding),
            is_remote=callback is None,
            tell=deciding.hooks.observe if deciding.hooks is not None else None,
            is_bypassed=lambda _session: is_off or desk.is_yolo(key) or desk.is_yolo(deciding.session_id),
        )
    )


def _workspace(deciding: Deciding) -> str:
    """Where the work was started; a session that comes back may stand elsewhere."""
    launched = deciding.options.tools.cwd or str(Path.cwd())
    configured = str((deciding.settings.mapping.get("terminal") or {}).get("cwd") or "")
    return launched if deciding.options.tools.cwd else str(Path(launched, Path(configured).expanduser()))


def _ask(callback: Callable[..., Any], in_pool: Callable[..., Awaitable[Any]]) -> "Ask":
    from hermes.tools.approval.queue import ask_callback  # noqa: PLC0415

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


def _judge(deciding: Deciding) -> "Judge | None":
    if deciding.settings.of(approvals_section.Section).mode != "smart":
        return None
    from hermes.tools.approval.judge import judge_with  # noqa: PLC0415 - only smart mode needs it

    async def ask_model(system: str, text: str, question: "ApprovalQuestion", scope: TurnScope) -> str:
        asked = auxiliary.AuxiliaryQuestion(
            task="approval", system=system, text=text, session_id=question.action.session_id or None, max_tokens=512
        )
        return await deciding.helper.ask(asked, scope)

    return judge_with(ask_model)
