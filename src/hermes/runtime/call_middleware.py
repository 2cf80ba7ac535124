"""Middleware of plugins on the way of a call through the kernel."""

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from hermes.runtime.call_hooks import call_facts
from hermes.runtime.context import CallContext, Prepared, TurnContext
from hermes.runtime.redaction import clean_content
from hermes.tools.hooks import Hooks
from hermes.tools.middleware import executed, requested
from hermes.tools.results.tool_result import failure_of
from hermes.types import Content, JsonObject, ResultStatus


async def with_middleware(ctx: TurnContext, one: Prepared) -> Prepared:
    """The call with the arguments that middleware gives it."""
    hooks = ctx.services.hooks
    assert isinstance(hooks, Hooks)
    facts = call_facts(ctx.for_call(one, ctx.scope))
    args = await requested(hooks.table, facts, lambda changed: ctx.tools.check(one.name, changed))
    return one if args is one.args else replace(one, args=args)


async def run_around(
    call: CallContext, run: Callable[[CallContext], Awaitable[tuple[Content, ResultStatus]]]
) -> tuple[Content, ResultStatus]:
    """The call by way of the middleware around it; what that answers is judged like a tool's own."""
    hooks, tools, asked = call.turn.services.hooks, call.turn.tools, call.asked
    assert isinstance(hooks, Hooks)
    ended: list[tuple[Content, ResultStatus]] = []

    async def inner(args: JsonObject) -> Content:
        ended.append(await run(replace(call, asked=replace(asked, args=args))))
        return ended[-1][0]

    content = await executed(hooks.table, call_facts(call), inner, lambda changed: tools.check(asked.name, changed))
    if ended and content is ended[-1][0]:
        return ended[-1]
    if call.route != "code":
        content = clean_content(content, call.turn.services.redactor)
    return content, "failed" if failure_of(content) else "ok"
