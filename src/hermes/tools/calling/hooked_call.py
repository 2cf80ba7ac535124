"""A call from outside an agent past the hooks and middleware of the process."""

from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

from msgspec.structs import replace

from hermes.tools.calling.loops import run_sync
from hermes.tools.hook_bus import CallEnd, CallFacts, refusal, told
from hermes.tools.registry import tool_error
from hermes.tools.results.tool_result import failure_of
from hermes.types import JsonObject, text_of

if TYPE_CHECKING:
    from hermes.tools.calling.outside_agent import DirectCalls, HookedCall


def run_hooked(outside: "DirectCalls", asked: "HookedCall", run: Callable[[JsonObject], str]) -> str:
    """The result text: `run` is asked for it when nobody refuses."""
    hooks, call = outside.hooks, asked.call
    facts = CallFacts(
        name=call.name,
        args=asked.args,
        task_id=call.task_id,
        session_id=call.session_id,
        tool_call_id=call.tool_call_id,
    )
    if hooks.middleware("tool_request"):
        from hermes.tools.middleware import requested  # for who has some

        facts = replace(facts, args=run_sync(requested(hooks.table, facts, asked.check), None))
    reason = run_sync(refusal(hooks, facts, asked.rules, skip_pre_hook=call.skip_pre_hook), None)
    started = monotonic()
    content = tool_error(reason) if reason is not None else _executed(outside, asked, facts, run)
    took_ms = (monotonic() - started) * 1000
    end = CallEnd(content=content, duration_ms=took_ms, blocked=reason, error=failure_of(content) or "")
    return text_of(run_sync(told(hooks, facts, end), None))


def _executed(outside: "DirectCalls", asked: "HookedCall", facts: CallFacts, run: Callable[[JsonObject], str]) -> str:
    if not outside.hooks.middleware("tool_execution"):
        return run(facts.args)
    from hermes.tools.middleware import executed  # for who has some

    async def in_pool(args: JsonObject) -> str:
        return await outside.pool.run(run, args)

    return text_of(run_sync(executed(outside.hooks.table, facts, in_pool, asked.check), None))
