"""The hooks of a bus: policies that can refuse a call, observers that cannot touch it, transforms, middleware.

Policies and transforms are waited for, each with a deadline. Observers are not: what they are told goes into a bounded
queue of their owner's, and a thread of the owner's takes it from there, in order. What did not fit is counted.
"""

import _thread
import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import lru_cache
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any

from msgspec import Struct

from hermes.hook_points import HOOK_API, VERSION_KEYWORD, plain_copy
from hermes.seams import HookBus, ToolRules
from hermes.tools.calling.captured_prints import quiet_prints
from hermes.tools.calling.loops import run_sync
from hermes.tools.calling.pool import DaemonPool
from hermes.tools.hooks import AFTER, BEFORE, HOOK_LIMIT_S, HookKind, Hooks, nobody_listens
from hermes.tools.timed_steps import TimedSteps
from hermes.types import Content, JsonObject

log = logging.getLogger(__name__)

BACKLOG = 1000  # events that wait for one owner's observers
IDLE_S = 5.0  # that a thread waits for the next event
CLOSE_S = 2.0  # what observers may take for the rest when an agent goes
Approve = Callable[["ApprovalWish"], Awaitable[str | None]]


class Hook(Struct, frozen=True):
    """One callback: what it is called for, whose it is, and how long it may take."""

    callback: Callable[..., Any]
    owner: str
    kind: HookKind
    timeout_s: float = HOOK_LIMIT_S


class ApprovalWish(Struct, frozen=True, kw_only=True):
    """A policy wants a person to see the call."""

    owner: str
    tool_name: str
    message: str
    rule_key: str = ""


class HookTable:
    """What `Hooks` does once somebody listens."""

    def __init__(self, bus: Hooks, pool: DaemonPool) -> None:
        self._bus = bus
        self.pool = pool
        self._hooks: dict[str, list[Hook]] = {}
        self._middleware: dict[str, list[Hook]] = {}
        self._required: dict[str, set[str]] = {}
        self._queues: dict[str, ObserverQueue] = {}

    def add(self, hook: str, callback: Callable[..., Any], *, owner: str, kind: HookKind, timeout_s: float) -> None:
        self._hooks.setdefault(hook, []).append(Hook(callback, owner, kind, timeout_s))
        self._bus.heard.add(hook)

    def add_middleware(self, kind: str, callback: Callable[..., Any], *, owner: str, timeout_s: float) -> None:
        self._middleware.setdefault(kind, []).append(Hook(callback, owner, "transform", timeout_s))
        self._bus.heard.add(kind)

    def middleware(self, kind: str) -> Sequence[Hook]:
        return self._middleware.get(kind, ())

    def require(self, hook: str, owner: str) -> None:
        self._required.setdefault(hook, set()).add(owner)
        self._bus.heard.add(hook)

    def remove(self, owner: str) -> None:
        for table in (self._hooks, self._middleware):
            for hook, entries in table.items():
                table[hook] = [entry for entry in entries if entry.owner != owner]
        self._required = {hook: left for hook, owners in self._required.items() if (left := owners - {owner})}
        tables = (*self._hooks.items(), *self._middleware.items())
        self._bus.heard = {hook for hook, entries in tables if entries} | self._required.keys()

    async def allow(self, hook: str, payload: JsonObject, approve: Approve | None = None) -> str | None:
        entries = [entry for entry in self._hooks.get(hook, ()) if entry.kind == "policy"]
        missing = self._required.get(hook, set()) - {entry.owner for entry in entries}
        if missing:
            return f"the policy of {min(missing)!r} is not loaded, so nothing it guards may run"
        for entry in entries:
            try:
                answer = await self.call(hook, entry, payload)
                answer = dict(answer) if isinstance(answer, Mapping) else answer  # one of its own kind may fail, too
            except Exception as error:  # the border to a plugin's code; a guard that fails refuses
                log.exception("policy %r of %r failed", hook, entry.owner)
                self._failed(hook, entry.owner, error)
                return f"the policy of {entry.owner!r} failed ({type(error).__name__}: {error})"
            reason = await _judged(answer, entry.owner, payload, approve)
            if reason is not None:
                return reason
        self.notify(hook, payload, only="observer")
        return None

    def notify(self, hook: str, payload: JsonObject, only: str = "") -> None:
        for entry in self._hooks.get(hook, ()):
            if only and entry.kind != only:
                continue
            queue = self._queues.get(entry.owner)
            if queue is None:
                queue = self._queues[entry.owner] = ObserverQueue(entry.owner, self._failed)
            queue.put(hook, entry, payload)

    async def transform(self, hook: str, value: str, payload: JsonObject) -> str:
        """`value` as the callbacks leave it, each after the other; one that fails changes nothing."""
        entries = self._hooks.get(hook, ())
        keyword = _VALUE_KEYWORD.get(hook, "result")
        for entry in entries:
            answer = await self._quietly(hook, entry, payload)
            if isinstance(answer, str) and (answer or hook != "transform_llm_output"):
                value = answer
                payload = {**payload, keyword: value}
        return value

    async def gather(self, hook: str, payload: JsonObject) -> list[Any]:
        """What the callbacks answer, in order, without None; one that fails answers nothing."""
        found = []
        for entry in self._hooks.get(hook, ()):
            answer = await self._quietly(hook, entry, payload)
            if answer is not None:
                found.append(answer)
        return found

    async def _quietly(self, hook: str, entry: Hook, payload: JsonObject) -> Any:
        try:
            return await self.call(hook, entry, payload)
        except Exception as error:  # noqa: BLE001 - the border to a plugin's code; logged in `_failed`
            self._failed(hook, entry.owner, error)
            return None

    async def ask(self, entry: Hook, hook: str, payload: JsonObject) -> Any:
        """What one callback answers; None when it fails, which is noted."""
        return await self._quietly(hook, entry, payload)

    def _failed(self, hook: str, owner: str, error: BaseException) -> None:
        words = f"{type(error).__name__}: {error}"
        if (owner, hook) not in self._bus.faults:
            log.warning("hook %r of %r failed; further failures of it are not logged", hook, owner, exc_info=error)
            if self._bus.tell is not None:
                self._bus.tell(f"the hook {hook} of {owner!r} failed ({words})")
        self._bus.faults[owner, hook] = words

    def fault(self, hook: str, owner: str, error: BaseException) -> None:
        """Note that a middleware failed."""
        self._failed(hook, owner, error)

    @property
    def lost(self) -> dict[str, int]:
        """By owner, the events that did not fit its queue."""
        return {owner: queue.lost for owner, queue in self._queues.items() if queue.lost}

    async def close(self) -> None:
        """Let the observers take what waits for them, for a short while."""
        until = monotonic() + CLOSE_S
        for queue in self._queues.values():
            if not queue.is_idle:
                await self.pool.run(queue.drain, until - monotonic())
            queue.close()

    async def call(self, hook: str, entry: Hook, payload: JsonObject) -> Any:
        """What one callback answers, within its time; whatever it raises is raised."""
        keywords = keywords_for(entry.callback, payload)
        try:
            async with asyncio.timeout(entry.timeout_s) as limit:
                with quiet_prints(entry.owner):
                    if inspect.iscoroutinefunction(entry.callback):
                        return await self._on_loop(hook, entry, entry.callback(**keywords))
                    answer = await self.pool.run(entry.callback, **keywords)
                    if inspect.iscoroutine(answer):
                        return await self._on_loop(hook, entry, answer)
                    return await answer if inspect.isawaitable(answer) else answer
        except TimeoutError as error:
            if not limit.expired():
                raise  # its own
            raise TimeoutError(f"it took longer than {entry.timeout_s:g} s") from error

    async def _on_loop(self, hook: str, entry: Hook, answer: Coroutine[Any, Any, Any]) -> Any:
        """What a coroutine comes to. It runs on this loop, where clients it made in other hooks live, so that one that
        blocks can only be told of: its deadline does not pass while it does."""
        steps = TimedSteps(answer)
        try:
            return await steps
        finally:
            if (blocked := steps.blocked) is not None:
                self._failed(hook, entry.owner, blocked)


async def _judged(answer: object, owner: str, payload: JsonObject, approve: Approve | None) -> str | None:
    """The refusal in a policy's answer. An answer without an action says nothing; an unknown action refuses."""
    if not isinstance(answer, Mapping):
        return None
    action = answer.get("action")
    if action is None or action == "allow":
        return None
    message = answer.get("message")
    words = message if isinstance(message, str) and message else ""
    if action == "block":
        return words or f"blocked by the policy of {owner!r}"
    if action != "approve":
        return f"the policy of {owner!r} asked for {action!r}, which is no action that there is"
    if approve is None:
        return f"the policy of {owner!r} wants a person to see this call, and nobody can be asked here"
    wish = ApprovalWish(
        owner=owner,
        tool_name=str(payload.get("tool_name") or ""),
        message=words or f"the policy of {owner!r} wants you to see this call",
        rule_key=str(answer.get("rule_key") or ""),
    )
    return await approve(wish)


_VALUE_KEYWORD = {"transform_terminal_output": "output", "transform_llm_output": "response_text"}


class _Event:
    __slots__ = ("entry", "hook", "payload")

    def __init__(self, hook: str, entry: Hook, payload: JsonObject) -> None:
        self.hook = hook
        self.entry = entry
        self.payload = payload


class ObserverQueue:
    """What one owner's observers are still to be told. One thread tells it, in order; it ends when nothing comes.

    A callback cannot be stopped. When the next event comes and the last callback is over its time, its thread is left
    behind, which ends with that callback, and another goes on; so a hang costs the event it hangs in.
    """

    def __init__(self, owner: str, failed: Callable[[str, str, BaseException], None]) -> None:
        self._owner = owner
        self._failed = failed
        self._events: SimpleQueue[_Event] = SimpleQueue()
        self._lock = threading.Lock()  # guards the worker's number, and with it who may take events
        self._worker = 0  # the number of the thread at work; 0 is none
        self._made = 0
        self._began: tuple[float, Hook, str] | None = None  # the callback under way
        self._all_told = threading.Event()
        self._is_closed = False
        self.lost = 0

    @property
    def is_idle(self) -> bool:
        return self._events.empty() and self._began is None

    def put(self, hook: str, entry: Hook, payload: JsonObject) -> None:
        """Take an event in, at once; one that does not fit is counted."""
        with self._lock:
            began = self._began
            if began is not None and monotonic() - began[0] > began[1].timeout_s:
                late = TimeoutError(f"it took longer than {began[1].timeout_s:g} s, and was left behind")
                self._failed(began[2], self._owner, late)
                self._worker, self._began = 0, None
            if self._is_closed or self._events.qsize() >= BACKLOG:
                self.lost += 1
            else:
                self._events.put(_Event(hook, entry, payload))
                self._all_told.clear()
            if not self._worker and not self._is_closed:
                self._made += 1
                self._worker = self._made
                # Not `threading.Thread`: its `start` waits for the thread, and nobody here waits for an observer.
                _thread.start_new_thread(self._work, (self._made,))

    def drain(self, limit_s: float) -> None:
        """Wait until everything is told, at most so long."""
        self._all_told.wait(max(0.0, limit_s))

    def close(self) -> None:
        """Tell nothing more; what still waits is counted as lost."""
        with self._lock:
            self._is_closed = True
            self.lost += self._events.qsize()

    def _work(self, number: int) -> None:
        while True:
            try:
                event = self._events.get(timeout=IDLE_S)
            except Empty:
                event = None
            with self._lock:
                if self._worker != number or self._is_closed:
                    return  # left behind, or nobody is told any more
                if event is None:
                    if not self._events.empty():
                        continue
                    self._worker = 0
                    return
                self._began = (monotonic(), event.entry, event.hook)
            self._tell(event)
            with self._lock:
                if self._worker != number:
                    return
                self._began = None
                if self._events.empty():
                    self._all_told.set()

    def _tell(self, event: _Event) -> None:
        callback = event.entry.callback
        try:
            keywords = keywords_for(callback, event.payload)
            with quiet_prints(self._owner):
                answer = callback(**keywords)
                if inspect.isawaitable(answer):
                    run_sync(_finish(answer), event.entry.timeout_s)
        except BaseException as error:  # noqa: BLE001 - the border to a plugin's code, in a thread of its own
            self._failed(event.hook, self._owner, error)


async def _finish(answer: Awaitable[Any]) -> Any:
    return await answer


def keywords_for(callback: Callable[..., Any], payload: Mapping[str, Any]) -> JsonObject:
    """Copies of the keywords that the callback takes: what it does to them changes nothing."""
    names = _names(callback)
    given = {**payload, VERSION_KEYWORD: HOOK_API}
    return {key: plain_copy(value) for key, value in given.items() if names is None or key in names}


@lru_cache(maxsize=1024)
def _names(callback: Callable[..., Any]) -> frozenset[str] | None:
    """The keywords that a callback names; None when it takes any."""
    try:
        parameters = inspect.signature(callback).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return frozenset(parameter.name for parameter in parameters)


class CallFacts(Struct, frozen=True, kw_only=True):
    """Which call the hooks are told of."""

    name: str
    args: JsonObject
    task_id: str | None = None
    session_id: str | None = None
    tool_call_id: str | None = None
    turn_id: str = ""
    api_request_id: str = ""

    def payload(self) -> JsonObject:
        return {
            "tool_name": self.name,
            "args": self.args,
            "task_id": self.task_id or "",
            "session_id": self.session_id or "",
            "tool_call_id": self.tool_call_id or "",
            "turn_id": self.turn_id,
            "api_request_id": self.api_request_id,
        }


async def refusal(
    hooks: HookBus,
    facts: CallFacts,
    rules: ToolRules,
    *,
    skip_pre_hook: bool = False,
    approve: Approve | None = None,
) -> str | None:
    """Why the call must not run, or None. Each policy is asked exactly once."""
    if nobody_listens(hooks, BEFORE):
        return None
    if not skip_pre_hook:
        if isinstance(hooks, Hooks):
            trace = [one.owner for one in hooks.middleware("tool_request")]
            reason = await hooks.allow("pre_tool_call", {**facts.payload(), "middleware_trace": trace}, approve)
        else:
            reason = await hooks.allow("pre_tool_call", facts.payload())
        if reason is not None:
            return reason
    if rules.edits:
        reason = await hooks.allow("edit_approval", facts.payload())
        if reason is not None:
            return f"Edit approval denied: {reason}"
    return None


class CallEnd(Struct, frozen=True, kw_only=True):
    """What became of a call: its content, how long it took, and what its failure is called."""

    content: Content
    duration_ms: float
    blocked: str | None = None  # the reason, for a call that a policy refused
    error: str = ""  # for one that failed by itself

    def payload(self, facts: CallFacts) -> JsonObject:
        kind = "plugin_block" if self.blocked is not None else "tool_error" if self.error else ""
        status = "blocked" if self.blocked is not None else "error" if self.error else "ok"
        return {
            **facts.payload(),
            "result": self.content,
            "duration_ms": int(self.duration_ms),
            "status": status,
            "error_type": kind,
            "error_message": self.blocked or self.error,
        }


async def told(hooks: HookBus, facts: CallFacts, end: CallEnd) -> Content:
    """Tell the observers, and return the content as the transforms leave it."""
    content = end.content
    if nobody_listens(hooks, AFTER):
        return content
    payload = end.payload(facts)
    await hooks.observe("post_tool_call", payload)
    # The words of a refusal stay the policy's own.
    if end.blocked is None and isinstance(content, str) and not nobody_listens(hooks, ("transform_tool_result",)):
        return await hooks.transform("transform_tool_result", content, payload)
    return content
