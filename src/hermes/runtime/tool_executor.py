"""Run the tool calls of one assistant message: validate all, run what may run side by side, answer in call order."""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Protocol

import msgspec
from msgspec import Struct, field

from hermes.errors import ToolError
from hermes.runtime.context import CallContext, Prepared, TurnContext
from hermes.runtime.guardrails import GuardrailDecision, Guardrails
from hermes.runtime.redaction import clean_content
from hermes.scope import CallInterrupted
from hermes.seams import ToolView
from hermes.tools.calling.arguments import repair_name
from hermes.tools.calling.call_order import Waves
from hermes.tools.calling.validation import CallRefused, parse_arguments, refuse_unknown
from hermes.tools.registry import tool_error
from hermes.tools.results.limits import NO_LIMIT, fit, spill
from hermes.tools.results.tool_result import error_content, failure_of, fence, sanitise_error, with_note
from hermes.types import Content, JsonObject, ResultStatus, ToolCall, ToolResult, text_of

MAX_PARALLEL = 8
AT_ONCE = 32  # calls that are looked at before the loop may hear of something else, such as an interrupt


class RoundLog(Protocol):
    """Who is told, as it happens, what becomes of the calls of a message."""

    async def persist(self, results: Sequence[ToolResult], starting: Sequence[ToolCall]) -> None: ...
    def started(self, call: ToolCall, args: JsonObject) -> None: ...
    def finished(self, call: ToolCall, args: JsonObject, result: ToolResult) -> None: ...


async def run_calls(
    ctx: TurnContext,
    calls: Sequence[ToolCall],
    log: RoundLog,
    guardrails: Guardrails | None = None,
    *,
    delay_s: float = 0.0,
) -> list[ToolResult]:
    """Run `calls`; return their results in call order.

    Calls run side by side when what they read and write is disjoint, in ordered waves otherwise. Before a call starts,
    `log.persist` was awaited with it, and with the results so far that were not persisted yet: a later wave never runs
    on a result that a crash could take back, and after a crash nobody wonders about a call that was only waiting. It is
    awaited at least once, before anything runs, with no call when none may run. The last wave's results are returned
    for the kernel to commit.

    Whatever a handler raises becomes a result that the model reads. A cancellation of the turn passes through: by then
    `log` was told of every call that began and of every call that ended. When a guardrail halts (`guardrails.halted`),
    calls that had not started are answered without being run. `delay_s` is waited between waves.
    """
    batch = _Batch(ctx, guardrails or Guardrails(), ctx.services.limits.batch, log)
    done: list[ToolResult] = []
    pending: deque[Prepared] = deque()
    changes = "tool_request" in getattr(ctx.services.hooks, "heard", ())
    for place, call in enumerate(calls, 1):  # all are checked before any of them runs
        ready = _validated(ctx.tools, call, place)
        if changes and isinstance(ready, Prepared):
            from hermes.runtime.call_middleware import with_middleware  # for who has some

            ready = await with_middleware(ctx, ready)
        if isinstance(ready, Prepared):
            pending.append(ready)
        else:
            done.append(batch.refused(call, ready))
        if place % AT_ONCE == 0:
            await asyncio.sleep(0)
    if not pending:
        await log.persist(done, ())
    is_first, kept = True, 0
    while pending:
        waves = await batch.planned(pending)
        while waves:
            wave = waves.popleft()
            if delay_s > 0 and not is_first:
                await log.persist(done[kept:], ())
                kept = len(done)
                await ctx.scope.sleep(delay_s)
            # Those that find no place at once are persisted when they get one.
            await log.persist(done[kept:], [one.call for one in wave[:MAX_PARALLEL]])
            is_first, kept = False, len(done)
            done += await batch.run(wave)
            if ctx.services.environment.cwd != batch.planned_in:
                left = sorted((one for wave in waves for one in wave), key=lambda one: one.place)
                pending.extendleft(reversed(left))
                waves.clear()
    results = {result.call_id: result for result in done}
    return [results[call.id] for call in calls]


def _validated(view: ToolView, call: ToolCall, place: int) -> Prepared | ToolResult:
    """The call made ready, or refused with its own message."""
    known = view.names()
    try:
        name = call.name if call.name in known else repair_name(call.name, known)
        if name is None:
            raise refuse_unknown(call.name, known)
        args = parse_arguments(call.arguments)
        name, args = view.unwrap(name, args)
        args = view.check(name, args)
    except CallRefused as refused:
        return ToolResult(call_id=call.id, name=call.name, content=refused.as_json(), status="failed")
    except ToolError as error:
        return ToolResult(call_id=call.id, name=call.name, content=tool_error(error), status="failed")
    return Prepared(call, name, args, view.rules(name), place)


class _Done(Struct, frozen=True):
    """What a call came to, before it is fenced and noted."""

    name: str
    content: Content
    provenance: str
    decision: GuardrailDecision

    def told(self, result: ToolResult, content: Content) -> ToolResult:
        """`result` with `content` as the model reads it."""
        if self.provenance or content is not result.content:
            result = msgspec.structs.replace(result, content=fence(content, self.name, self.provenance))
        return _noted(result, self.decision)


class _Batch(Struct):
    """The calls of one message on their way."""

    ctx: TurnContext
    guardrails: Guardrails
    left: float  # characters that further results may have
    log: RoundLog
    planned_in: str = ""  # the working directory that the waves were worked out in
    done: dict[str, _Done] = field(default_factory=dict)  # those of the wave whose results may yet be shortened

    async def planned(self, pending: deque[Prepared]) -> deque[list[Prepared]]:
        """Take the calls up to the next barrier, which has a wave of its own, out of `pending`: in waves.

        What is behind a barrier is planned when that has run, since it may have moved the working directory that
        paths start from, or put links in their way. Should another call move it, the rest is to be planned again.
        """
        self.planned_in = self.ctx.services.environment.cwd
        if len(pending) == 1:
            return deque([[pending.popleft()]])
        sorter, waves = Waves(), list[list[Prepared]]()
        for seen in range(1, len(pending) + 1):
            one = pending.popleft()
            effects = self.ctx.tools.effects(one.name, one.args, self.ctx.for_call(one, self.ctx.scope))
            wave = sorter.add(effects)
            waves += [[] for _ in range(wave + 1 - len(waves))]
            waves[wave].append(one)
            if effects.barrier:
                break
            if seen % AT_ONCE == 0:
                await asyncio.sleep(0)
        return deque(waves)

    def refused(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """Show and count a call that did not pass validation."""
        self.log.started(call, {})
        decision = self.guardrails.after(call.name, call.arguments, result.content, result.status)
        result = _noted(result, decision)
        self.log.finished(call, {}, result)
        return result

    async def run(self, wave: Sequence[Prepared]) -> list[ToolResult]:
        """Run one wave; results in its order."""
        if len(wave) == 1:
            results = [await self._run_one(wave[0])]
        else:
            places = asyncio.Semaphore(MAX_PARALLEL)
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._in_place(places, one, must_wait=place >= MAX_PARALLEL), name=one.call.id)
                    for place, one in enumerate(wave)
                ]
            results = [task.result() for task in tasks]
        size = _size(results)
        if size > self.left:
            results = await self._shortened(results, size)
            size = _size(results)
        self.left -= size
        self.done = {}
        return results

    async def _shortened(self, results: list[ToolResult], size: int) -> list[ToolResult]:
        """The results of a wave within what is left for the whole batch; the largest give way first."""
        done = self.done
        fixed = size - sum(len(text_of(one.content)) for one in done.values())
        contents = {call: (one.name, one.content) for call, one in done.items()}
        shorter = await spill(contents, self.left - fixed, self.ctx.services.shelf)
        return [
            done[result.call_id].told(result, shorter[result.call_id]) if result.call_id in shorter else result
            for result in results
        ]

    async def _in_place(self, places: asyncio.Semaphore, one: Prepared, *, must_wait: bool) -> ToolResult:
        async with places:
            if must_wait:
                await self.log.persist((), [one.call])
            return await self._run_one(one)

    async def _run_one(self, one: Prepared) -> ToolResult:
        halted = self.guardrails.halted
        if halted is not None:
            reason = f"not run: the turn was stopped because {halted.message}"
            return ToolResult(call_id=one.call.id, name=one.call.name, content=tool_error(reason), status="cancelled")
        shown = one.shown
        self.log.started(shown, one.args)
        block = self.guardrails.before(one.name, one.args, read_only=one.rules.read_only)
        if block.action == "block":
            result = ToolResult(call_id=one.call.id, name=one.call.name, content=block.as_json(), status="failed")
        else:
            try:
                result = await self._called(one)
            except CallInterrupted as stopped:
                result = ToolResult(call_id=one.call.id, name=one.call.name, content=stopped.content, status="unknown")
                self.log.finished(shown, one.args, result)
                # A TaskGroup or timeout further out takes a subclass for an error of its body.
                raise asyncio.CancelledError from stopped
        self.log.finished(shown, one.args, result)
        return result

    async def _called(self, one: Prepared) -> ToolResult:
        """One call through every stage."""
        services = self.ctx.services
        scope = self.ctx.scope.child(one.call.id, timeout_s=one.rules.timeout_s)
        result = await through_stages(self.ctx.for_call(one, scope))
        content = result.content
        decision = self.guardrails.after(one.name, one.args, content, result.status, read_only=one.rules.read_only)
        limit = services.limits.one(one.name, one.rules)
        if len(text_of(content)) > limit:
            content = await fit(one.name, content, limit, services.shelf)
        done = _Done(one.name, content, one.rules.provenance, decision)
        if limit != NO_LIMIT:
            self.done[one.call.id] = done
        return done.told(result, content)


async def through_stages(call: CallContext) -> ToolResult:
    """A call past who may refuse it, to its handler, to who may change its result; neither cut nor fenced yet."""
    services = call.turn.services
    parts, started = services.parts, services.clock.monotonic()
    content: Content
    status: ResultStatus
    reason = await parts.refusal(call)
    if reason is not None:
        content, status = tool_error(reason), "failed"
    elif "tool_execution" in getattr(services.hooks, "heard", ()):
        from hermes.runtime.call_middleware import run_around  # for who has some

        content, status = await run_around(call, _contained)
    else:
        content, status = await _contained(call)
    duration_ms = (services.clock.monotonic() - started) * 1000 - call.details.get("asked_ms", 0.0)
    return ToolResult(
        call_id=call.call_id,
        name=call.asked.call.name,
        content=await parts.result(call, content, duration_ms),
        status=status,
        duration_ms=duration_ms,
        details=call.details,
    )


async def _contained(call: CallContext) -> tuple[Content, ResultStatus]:
    """The tool border: what the handler gives or raises, as content and status."""
    content: Content = ""
    name, args, tools, services = call.asked.name, call.asked.args, call.turn.tools, call.turn.services
    try:
        async with call.scope:
            around = services.parts.around(call)
            if around is None:
                content = await tools.call(name, args, call)
            else:
                async with around:
                    content = await tools.call(name, args, call)
    except ToolError as error:
        return tool_error(sanitise_error(services.redactor.redact(str(error)))), "failed"
    except Exception as error:  # nothing a handler raises may end the turn
        services.log.exception("tool %r failed", name)
        return error_content("Tool execution failed", error), "failed"
    if call.scope.state == "expired":
        # Not `failed`: the call may have taken effect before we stopped waiting for it.
        text = f"{name} gave no result within {call.asked.rules.timeout_s:g} s and was stopped"
        return tool_error(f"{text}; part of it may have taken effect, so check before trying again."), "unknown"
    if call.scope.state == "cancelled":
        return tool_error(f"{name} was cancelled; part of it may have taken effect."), "unknown"
    if call.route != "code":
        # What a script's own calls return stays whole: it may write that to a file, and a marker must not get there.
        # Before it is cut, shelved or shown to anybody: of half a secret nothing is known.
        content = clean_content(content, services.redactor)
    return content, "failed" if failure_of(content) else "ok"


def _size(results: Sequence[ToolResult]) -> int:
    return sum([len(text_of(result.content)) for result in results])


def _noted(result: ToolResult, decision: GuardrailDecision) -> ToolResult:
    if decision.action not in ("warn", "halt"):
        return result
    return msgspec.structs.replace(result, content=with_note(result.content, "_warning", decision.note()))
