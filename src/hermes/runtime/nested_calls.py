"""Calls that a call makes itself: the same stages as the model's own, other ids, and no place in the transcript."""

import asyncio

import msgspec

from hermes.ops import CallClosed, CallJournalled
from hermes.runtime.context import CallContext, Prepared
from hermes.runtime.tool_executor import through_stages
from hermes.scope import TurnScope, unbroken
from hermes.tools.calling.call_order import Lanes
from hermes.tools.code_execution.script_request import for_script
from hermes.tools.registry import tool_error
from hermes.types import CallFinished, CallStarted, Content, JsonObject, ToolCall, ToolResult


class KernelCalls:
    """`NestedCalls` of one call of a turn. The ids are `<its id>/1`, `/2` and so on.

    Results are neither cut nor fenced: the program that asked for them wants them whole, and what of them reaches
    the model passes those stages with the outer call's result.
    """

    def __init__(self, outer: CallContext) -> None:
        self._outer = outer
        self._turn = outer.turn
        self._lanes = Lanes()
        self._count = 0

    def names(self) -> frozenset[str]:
        return self._turn.tools.names() - self._turn.tools.barred()

    def check(self, name: str, args: JsonObject) -> JsonObject:
        return self._turn.tools.check(name, args)

    async def call(self, name: str, args: JsonObject, scope: TurnScope) -> Content:
        self._count += 1
        call = ToolCall(f"{self._outer.call_id}/{self._count}", name, msgspec.json.encode(args).decode())
        rules = self._turn.tools.rules(name)
        one = Prepared(call, name, args, rules)
        if "tool_request" in getattr(self._turn.services.hooks, "heard", ()):
            from hermes.runtime.call_middleware import with_middleware  # for who has some

            one = await with_middleware(self._turn, one)
            args = one.args
        as_called = self._turn.for_call(one, scope.child(call.id, timeout_s=rules.timeout_s))
        ctx = msgspec.structs.replace(as_called, route="code", memo=for_script(as_called.memo))
        async with self._lanes.entered(lambda: self._turn.tools.effects(name, args, ctx)):
            return await self._run(one, ctx)

    async def _run(self, one: Prepared, ctx: CallContext) -> Content:
        call = one.call
        await unbroken(self._turn.services.store.commit(CallJournalled(self._turn.session_id, call)))
        self._turn.sink.emit(CallStarted(call, one.args))
        try:
            result = await through_stages(ctx)
        except asyncio.CancelledError:
            # The script is being stopped while it waits: what it asked for may have taken effect.
            result = ToolResult(
                call_id=call.id, name=call.name, content=tool_error(f"{call.name} was stopped"), status="unknown"
            )
            await self._close(call, one.args, result)
            raise
        await self._close(call, one.args, result)
        return result.content

    async def _close(self, call: ToolCall, args: JsonObject, result: ToolResult) -> None:
        await unbroken(
            self._turn.services.store.commit(
                CallClosed(self._turn.session_id, call.id, result.status, result.duration_ms)
            )
        )
        self._turn.outcome.saw(call, result)
        self._turn.sink.emit(CallFinished(call, args, result))
