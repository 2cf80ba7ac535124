"""What hooks are told and asked of a turn's beginning and of its calls."""

import hashlib
from collections.abc import Mapping
from typing import Any

from hermes.hook_points import LazyView
from hermes.runtime.context import CallContext
from hermes.runtime.parts import TurnFacts
from hermes.seams import Action, HookBus
from hermes.tools.hook_bus import ApprovalWish, CallEnd, CallFacts, refusal, told
from hermes.tools.hooks import AFTER, nobody_listens
from hermes.tools.results.tool_result import failure_of
from hermes.types import Content

PLUGIN_RULE = "plugin_rule:"  # as the gate knows it: `hermes.tools.approval.effects_model`


async def words_of(bus: HookBus, turn: TurnFacts, platform: str, sender_id: str) -> str:
    """What the hooks of a turn's beginning say beside the message."""
    ids = {"task_id": turn.session_id, "session_id": turn.session_id, "turn_id": turn.turn_id}
    about = {**ids, "model": turn.model, "platform": platform}
    if turn.is_new:
        await bus.observe("on_session_start", about)
    payload = {
        **about,
        "user_message": turn.said,
        "conversation_history": LazyView.of(turn.history),
        "is_first_turn": len(turn.history) == 1,
        "sender_id": sender_id,
    }
    return "\n\n".join(filter(None, map(_context, await bus.gather("pre_llm_call", payload))))


async def refused(bus: HookBus, call: CallContext, blocked: dict[str, str]) -> str | None:
    """Why the call must not run; noted in `blocked` until its end is told."""

    async def ask_person(wish: ApprovalWish) -> str | None:
        return await _asked(call, wish)

    reason = await refusal(bus, call_facts(call), call.asked.rules, approve=ask_person)
    if reason is not None and not nobody_listens(bus, AFTER):
        blocked[call.call_id] = reason
    return reason


async def ended(bus: HookBus, call: CallContext, content: Content, duration_ms: float, blocked: str | None) -> Content:
    """The content of a call that is over, as its hooks leave it."""
    error = failure_of(content) or "" if blocked is None else ""
    end = CallEnd(content=content, duration_ms=duration_ms, blocked=blocked, error=error)
    return await told(bus, call_facts(call), end)


def call_facts(call: CallContext) -> CallFacts:
    """Which call the hooks are told of."""
    return CallFacts(
        name=call.asked.name,
        args=call.asked.args,
        task_id=call.task_id,
        session_id=call.session_id,
        tool_call_id=call.call_id,
        turn_id=call.turn.turn_id,
    )


async def _asked(call: CallContext, wish: ApprovalWish) -> str | None:
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
