"""Middleware around a call: it may change the arguments, stand around the tool, or answer in its place.

Whatever it does, the tool runs at most once. One that fails before the tool ran is skipped; one that fails after it
keeps the tool's result. Its deadline counts its own time, not the tool's.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, TypeVar

from hermes.errors import ToolError
from hermes.tools.calling.captured_prints import quiet_prints
from hermes.tools.calling.pool import DaemonPool
from hermes.tools.hook_bus import CallFacts, Hook, HookTable, keywords_for
from hermes.types import Content, JsonObject

Value = TypeVar("Value")  # what goes in: arguments, a request
Outcome = TypeVar("Outcome")  # what comes out
Check = Callable[[JsonObject], JsonObject]


async def requested(hooks: HookTable, facts: CallFacts, check: Check) -> JsonObject:
    """The call's arguments as `tool_request` leaves them, each seeing what the one before made.

    What does not fit the tool's schema any more, and whatever else goes wrong, changes nothing.
    """
    args = facts.args
    for entry in hooks.middleware("tool_request"):
        payload = {**facts.payload(), "args": args, "original_args": facts.args}
        try:
            answer = await hooks.call("tool_request", entry, payload)
            if isinstance(answer, Mapping) and isinstance(answer.get("args"), dict):
                args = check(answer["args"])
        except Exception as error:  # noqa: BLE001 - the border to a plugin's code; noted as a fault
            hooks.fault("tool_request", entry.owner, error)
    return args


async def executed(
    hooks: HookTable, facts: CallFacts, run: Callable[[JsonObject], Awaitable[Content]], check: Check
) -> Content:
    """The result of the call by way of `tool_execution`, the first registered being the outermost."""

    def fit(args: Any) -> JsonObject:
        if not isinstance(args, dict):
            raise ToolError("next_call takes the arguments as an object")
        return check(args)

    told = {**facts.payload(), "original_args": facts.args}
    chain: Chain[JsonObject, Content] = Chain(hooks, "tool_execution", "args", told, fit)
    return await chain.run(facts.args, run, _as_content)


def _as_content(answer: Any) -> Content | None:
    return answer if isinstance(answer, str) else None


async def _called(pool: DaemonPool, entry: Hook, keywords: JsonObject) -> Any:
    with quiet_prints(entry.owner):
        if inspect.iscoroutinefunction(entry.callback):
            return await entry.callback(**keywords)
        answer = await pool.run(entry.callback, **keywords)
        return await answer if inspect.isawaitable(answer) else answer


class Chain(Generic[Value, Outcome]):
    """Callbacks with a `next_call`, one around the other, and something that runs at most once in the middle."""

    def __init__(
        self, hooks: HookTable, kind: str, keyword: str, facts: JsonObject, fit: Callable[[Any], Value]
    ) -> None:
        self._hooks = hooks
        self._kind = kind
        self._keyword = keyword  # of the value: `args`, `request`
        self._facts = facts
        self._fit = fit  # what a callback hands on, checked
        self.show_value: Callable[[Value], Any] = lambda value: value  # the value as callbacks see it

    async def run(
        self,
        value: Value,
        inner: Callable[[Value], Awaitable[Outcome]],
        taken: Callable[[Any], Outcome | None],
        shown: Callable[[Outcome], Any] = lambda outcome: outcome,
    ) -> Outcome:
        """What comes out at the outer end.

        `shown` is an outcome as callbacks see it; `taken` makes one of a callback's answer, None when it is none.
        """
        step = inner
        for entry in reversed(self._hooks.middleware(self._kind)):
            step = self._around(entry, step, taken, shown)
        return await step(value)

    def _around(
        self,
        entry: Hook,
        inner: Callable[[Value], Awaitable[Outcome]],
        taken: Callable[[Any], Outcome | None],
        shown: Callable[[Outcome], Any],
    ) -> Callable[[Value], Awaitable[Outcome]]:
        async def step(value: Value) -> Outcome:
            once = _Once(inner, self._fit, value, entry.timeout_s)
            try:
                answer = await self._ask(entry, value, once, shown)
            except Exception as error:  # noqa: BLE001 - the border to a plugin's code; noted as a fault
                if once.raised is not None:
                    raise once.raised from None  # downstream errors pass through unchanged
                self._hooks.fault(self._kind, entry.owner, error)
                answer = None
            finally:
                once.is_closed = True
            made = None if answer is None else _meant(answer, once, taken)
            if made is not None:
                return made
            if once.is_used:
                return once.outcome()
            return await inner(value)

        return step

    async def _ask(self, entry: Hook, value: Value, once: "_Once[Value, Outcome]", shown: Callable[..., Any]) -> Any:
        if (resolve := getattr(entry.callback, "resolve", None)) is not None:  # of a plugin that is not imported yet
            entry = Hook(await self._hooks.pool.run(resolve), entry.owner, entry.kind, entry.timeout_s)
        async with asyncio.timeout(entry.timeout_s) as once.limit:
            next_call = once.awaited if inspect.iscoroutinefunction(entry.callback) else once.blocking
            once.shown = shown
            keywords = keywords_for(entry.callback, {**self._facts, self._keyword: self.show_value(value)})
            if self._takes_next(entry):
                keywords["next_call"] = next_call
            try:
                return await _called(self._hooks.pool, entry, keywords)
            except asyncio.CancelledError:
                once.cancel()
                raise

    @staticmethod
    def _takes_next(entry: Hook) -> bool:
        try:
            parameters = inspect.signature(entry.callback).parameters
        except (TypeError, ValueError):
            return True
        return "next_call" in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())


def _meant(answer: Any, once: "_Once[Any, Outcome]", taken: Callable[[Any], Outcome | None]) -> Outcome | None:
    """What a callback's answer means: the very outcome when it gave back what it was shown."""
    if once.is_used and once.raised is None and once.seen is answer:
        return once.outcome()
    return taken(answer)


class _Once(Generic[Value, Outcome]):
    """The `next_call` of one callback. While what is inside runs, the callback's own time stands still."""

    def __init__(
        self, inner: Callable[[Value], Awaitable[Outcome]], fit: Callable[[Any], Value], value: Value, limit_s: float
    ) -> None:
        self._inner = inner
        self._fit = fit
        self._value = value
        self._limit_s = limit_s
        self._loop = asyncio.get_running_loop()
        self._outcome: list[Outcome] = []
        self._task: Any = None  # of a blocking callback: what runs for it on the loop
        self.limit: asyncio.Timeout | None = None
        self.shown: Callable[[Outcome], Any] = lambda outcome: outcome
        self.seen: Any = None  # what the callback was given
        self.raised: BaseException | None = None
        self.is_used = False
        self.is_closed = False

    async def awaited(self, changed: Any = None) -> Any:
        """For callbacks that are coroutines."""
        if self.is_used or self.is_closed:
            raise RuntimeError("next_call may be used once, while the middleware runs")
        value = self._value if changed is None else self._fit(changed)
        self.is_used = True
        self._pause(None)
        try:
            outcome = await self._inner(value)
        except BaseException as error:
            self.raised = error
            raise
        finally:
            self._pause(self._loop.time() + self._limit_s)
        self._outcome.append(outcome)
        self.seen = self.shown(outcome)
        return self.seen

    def blocking(self, changed: Any = None) -> Any:
        """For callbacks in a thread."""
        self._task = asyncio.run_coroutine_threadsafe(self.awaited(changed), self._loop)
        return self._task.result()

    def cancel(self) -> None:
        """The callback is given up; what runs for it ends with it."""
        if self._task is not None:
            self._task.cancel()

    def outcome(self) -> Outcome:
        """What the inside came to."""
        if self.raised is not None:
            raise self.raised
        return self._outcome[0]

    def _pause(self, when: float | None) -> None:
        if self.limit is not None and not self.limit.expired():
            self.limit.reschedule(when)
