"""Calls that a call from outside an agent makes itself: the same stages, and no journal to write."""

import logging
from dataclasses import replace
from time import monotonic

from hermes.errors import ToolError
from hermes.scope import TurnScope
from hermes.tools.calling.call_order import Lanes
from hermes.tools.calling.dispatch import invoke
from hermes.tools.calling.outside_agent import OutsideContext
from hermes.tools.code_execution.script_request import for_script
from hermes.tools.hook_bus import CallEnd, CallFacts, refusal, told
from hermes.tools.registry import Registered, registry, tool_error
from hermes.tools.results.tool_result import error_content, failure_of, sanitise_error
from hermes.tools.view import effects_of, rules_of
from hermes.types import Content, JsonObject

log = logging.getLogger(__name__)


class OutsideCalls:
    """`NestedCalls` outside an agent: every available tool can be called, as from outside itself."""

    def __init__(self, outer: OutsideContext) -> None:
        self._outer = outer
        self._lanes = Lanes()
        self._count = 0

    def names(self) -> frozenset[str]:
        return frozenset(name for name in registry.get_all_tool_names() if registry.is_available(name))

    def check(self, name: str, args: JsonObject) -> JsonObject:
        return self._outer.outside.checked(_known(name), args)

    async def call(self, name: str, args: JsonObject, scope: TurnScope) -> Content:
        tool, outer = _known(name), self._outer
        self._count += 1
        call_id = f"{outer.call_id}/{self._count}"
        place = replace(outer.place, memo=for_script(outer.place.memo))
        inner = scope.child(call_id, timeout_s=tool.traits.timeout_s)
        ctx = replace(outer, call_id=call_id, scope=inner, place=place, route="code")
        facts = CallFacts(
            name=name, args=args, task_id=outer.task_id, session_id=outer.session_id, tool_call_id=call_id
        )
        async with self._lanes.entered(lambda: effects_of(tool, args, ctx)):
            reason = await refusal(outer.outside.hooks, facts, rules_of(tool))
            started = monotonic()
            content = tool_error(reason) if reason is not None else await _contained(tool, args, ctx)
            took_ms = (monotonic() - started) * 1000
            end = CallEnd(content=content, duration_ms=took_ms, blocked=reason, error=failure_of(content) or "")
            return await told(outer.outside.hooks, facts, end)


async def _contained(tool: Registered, args: JsonObject, ctx: OutsideContext) -> Content:
    name = tool.entry.name
    try:
        async with ctx.scope:
            return await invoke(tool, args, ctx)
    except ToolError as error:
        return tool_error(sanitise_error(str(error)))
    except Exception as error:  # the tool border
        log.exception("tool %r failed", name)
        return error_content("Tool execution failed", error)
    return tool_error(f"{name} was stopped before it gave a result; part of it may have taken effect.")


def _known(name: str) -> Registered:
    tool = registry.get(name)
    if tool is None:
        raise ToolError(f"Unknown tool: {name}")
    return tool
