"""The hook bus of a session: policies that can refuse a call, observers that cannot touch it, and transforms."""

import asyncio
import inspect
import logging
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from hermes.seams import HookBus, ToolRules
from hermes.tools.calling.pool import DaemonPool
from hermes.types import Content, JsonObject

log = logging.getLogger(__name__)

HookKind: TypeAlias = Literal["policy", "observer", "transform"]
HOOK_LIMIT_S = 10.0


class Hook(Struct, frozen=True):
    """One callback: what it is called for, whose it is, and how long it may take."""

    callback: Callable[..., Any]
    owner: str
    kind: HookKind
    timeout_s: float = HOOK_LIMIT_S


class Hooks:
    """`HookBus` over callbacks, sync or async, that are handed the payload's keys they name.

    A policy refuses with `{"action": "block", "message": text}`. One that raises, asks for an unknown action, or takes
    too long refuses too, and so does one that was announced with `require` and never came. Observers and transforms
    that fail are logged once per owner and hook, and listed in `faults`.
    """

    def __init__(self, pool: DaemonPool | None = None) -> None:
        self._pool = pool or DaemonPool(size=8, name="hermes-hook")
        self._hooks: dict[str, list[Hook]] = {}
        self._required: dict[str, set[str]] = {}
        self.heard: set[str] = set()  # hooks that somebody listens to
        self.faults: dict[tuple[str, str], str] = {}

    def add(
        self, hook: str, callback: Callable[..., Any], *, owner: str, kind: HookKind, timeout_s: float = HOOK_LIMIT_S
    ) -> None:
        """Call `callback` for every `hook` event from now on."""
        self._hooks.setdefault(hook, []).append(Hook(callback, owner, kind, timeout_s))
        self.heard.add(hook)

    def require(self, hook: str, owner: str) -> None:
        """Refuse every `hook` until a policy of `owner` is there: a guard that failed to load must not be a gap."""
        self._required.setdefault(hook, set()).add(owner)
        self.heard.add(hook)

    def remove(self, owner: str) -> None:
        """Forget everything of `owner`."""
        for hook, entries in self._hooks.items():
            self._hooks[hook] = [entry for entry in entries if entry.owner != owner]
        self.heard = {hook for hook, entries in self._hooks.items() if entries} | self._required.keys()

    async def allow(self, hook: str, payload: JsonObject) -> str | None:
        entries = [entry for entry in self._hooks.get(hook, ()) if entry.kind == "policy"]
        missing = self._required.get(hook, set()) - {entry.owner for entry in entries}
        if missing:
            return f"the policy of {min(missing)!r} is not loaded, so nothing it guards may run"
        for entry in entries:
            try:
                answer = await self._call(entry, payload)
            except Exception as error:  # the border to a plugin's code; a guard that fails refuses
                log.exception("policy %r of %r failed", hook, entry.owner)
                return f"the policy of {entry.owner!r} failed ({type(error).__name__}: {error})"
            reason = _block_reason(answer, entry.owner)
            if reason is not None:
                return reason
        for entry in self._hooks.get(hook, ()):
            if entry.kind == "observer":
                await self._quietly(hook, entry, payload)
        return None

    async def observe(self, hook: str, payload: JsonObject) -> None:
        for entry in self._hooks.get(hook, ()):
            await self._quietly(hook, entry, payload)

    async def transform(self, hook: str, value: str, payload: JsonObject) -> str:
        for entry in self._hooks.get(hook, ()):
            answer = await self._quietly(hook, entry, payload)
            if isinstance(answer, str):
                return answer
        return value

    async def _quietly(self, hook: str, entry: Hook, payload: JsonObject) -> Any:
        try:
            return await self._call(entry, payload)
        except Exception as error:  # the border to a plugin's code; an observer never affects the call
            if (entry.owner, hook) not in self.faults:
                log.exception("hook %r of %r failed; further failures of it are not logged", hook, entry.owner)
            self.faults[entry.owner, hook] = f"{type(error).__name__}: {error}"
            return None

    async def _call(self, entry: Hook, payload: JsonObject) -> Any:
        keywords = _fitting(entry.callback, payload)
        async with asyncio.timeout(entry.timeout_s):
            if inspect.iscoroutinefunction(entry.callback):
                return await entry.callback(**keywords)
            answer = await self._pool.run(entry.callback, **keywords)
            return await answer if inspect.isawaitable(answer) else answer


def _block_reason(answer: object, owner: str) -> str | None:
    """The refusal in a policy's answer. An answer that is no object says nothing; an action we do not know refuses."""
    action = answer.get("action") if isinstance(answer, Mapping) else None
    if not isinstance(answer, Mapping) or action is None or action == "allow":
        return None
    message = answer.get("message")
    if action == "block":
        return message if isinstance(message, str) and message else f"blocked by the policy of {owner!r}"
    return f"the policy of {owner!r} asked for {action!r}, which is not offered here"


def _fitting(callback: Callable[..., Any], payload: JsonObject) -> JsonObject:
    try:
        parameters = inspect.signature(callback).parameters.values()
    except (TypeError, ValueError):
        return payload
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return payload
    names = {parameter.name for parameter in parameters}
    return {key: value for key, value in payload.items() if key in names}


BEFORE = ("pre_tool_call", "edit_approval")
AFTER = ("post_tool_call", "transform_tool_result")
AROUND = BEFORE + AFTER


class CallFacts(Struct, frozen=True, kw_only=True):
    """Which call the hooks are told of."""

    name: str
    args: JsonObject
    task_id: str | None = None
    session_id: str | None = None
    tool_call_id: str | None = None

    def payload(self) -> JsonObject:
        return {
            "tool_name": self.name,
            "args": self.args,
            "task_id": self.task_id,
            "session_id": self.session_id,
            "tool_call_id": self.tool_call_id,
        }


async def refusal(hooks: HookBus, facts: CallFacts, rules: ToolRules, *, skip_pre_hook: bool = False) -> str | None:
    """Why the call must not run, or None. Each policy is asked exactly once."""
    if nobody_listens(hooks, BEFORE):
        return None
    if not skip_pre_hook:
        reason = await hooks.allow("pre_tool_call", facts.payload())
        if reason is not None:
            return reason
    if rules.edits:
        reason = await hooks.allow("edit_approval", facts.payload())
        if reason is not None:
            return f"Edit approval denied: {reason}"
    return None


async def told(hooks: HookBus, facts: CallFacts, content: Content, duration_ms: float) -> Content:
    """Tell the observers, and return the content as the transforms leave it."""
    if nobody_listens(hooks, AFTER):
        return content
    payload = {**facts.payload(), "result": content, "duration_ms": duration_ms}
    await hooks.observe("post_tool_call", payload)
    if isinstance(content, str):
        return await hooks.transform("transform_tool_result", content, payload)
    return content


def nobody_listens(hooks: HookBus, names: tuple[str, ...]) -> bool:
    """Whether a payload for these need not even be made."""
    return isinstance(hooks, Hooks) and hooks.heard.isdisjoint(names)
