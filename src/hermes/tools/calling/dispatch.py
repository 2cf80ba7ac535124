"""Call a handler, sync or async, from wherever the caller stands."""

import inspect
import logging
from collections.abc import Callable, Coroutine, Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct

from hermes.seams import ToolContext
from hermes.tools.calling.captured_prints import quiet_prints
from hermes.tools.calling.loops import contained, run_on_tools_loop, run_sync
from hermes.tools.calling.pool import left_with
from hermes.tools.registry import Registered, ToolRegistry, tool_error
from hermes.tools.results.tool_result import error_content, normalise
from hermes.types import Content, JsonObject

log = logging.getLogger(__name__)

_OPEN = frozenset({"task_id", "user_task"})  # what a handler gets through **kw; the rest it must name
_FOREIGN = frozenset({"home", "project", "plugin"})


def invoke(
    tool: Registered, args: JsonObject, ctx: ToolContext, enabled_tools: list[str] | None = None
) -> Coroutine[Any, Any, Content]:
    """One call inside a turn. On its way to an MCP server it is in our own code, which prints nothing and answers with
    content; so nothing is put around that."""
    if tool.origin == "mcp" and tool.entry.is_async:
        return contained(tool.entry.handler(args, ctx=ctx))
    return _invoked(tool, args, ctx, enabled_tools)


async def _invoked(
    tool: Registered, args: JsonObject, ctx: ToolContext, enabled_tools: list[str] | None = None
) -> Content:
    """A call of any other tool. A sync handler runs in the pool, an async one is awaited.

    A foreign async handler runs on the tools' own loop: what it keeps between calls (a client, a lock) stays on one
    living loop, and one that blocks or swallows its cancellation holds up no turn. One that takes `ctx` works with
    the turn's parts, so it runs beside them.
    """
    handler = resolved(tool)
    is_plain = not _takes(handler).is_coroutine
    given = {
        "ctx": ctx,
        "task_id": ctx.task_id,
        "user_task": ctx.user_task,
        "session_id": ctx.session_id,
        "tool_call_id": ctx.call_id,
        "enabled_tools": enabled_tools,
    }
    keywords = fitting(tool, handler, given)
    with quiet_prints(tool.entry.name):
        if is_plain and not tool.entry.is_async:
            value = await ctx.in_thread(handler, args, **keywords)
            if inspect.isawaitable(value):
                value = await contained(value)
        else:
            work = awaited(handler, args, keywords) if is_plain else handler(args, **keywords)
            if tool.origin in _FOREIGN and "ctx" not in keywords:
                value = await run_on_tools_loop(work, handler)
            else:
                value = await contained(work)
    return normalise(value, tool.entry.name)


def dispatch_now(registry: ToolRegistry, name: str, args: JsonObject, keywords: Mapping[str, Any]) -> Any:
    """`registry.dispatch`: the result text, with every error as JSON text too. A multi-part result stays a dict.

    A handler with `**kw` gets every keyword. One that works with a `ctx` is given that of a call outside an agent
    when the caller brings none; one that needs a live turn is refused.
    """
    tool = registry.get(name)
    if tool is None:
        return tool_error(f"Unknown tool: {name}")
    try:
        handler = resolved(tool)
        if "ctx" not in keywords and takes_context(handler):
            from hermes.tools.calling.outside_agent import outside  # it is built on this module

            return outside.dispatch(tool, args, keywords)
        value = call_now(tool, args, keywords if _takes(handler).is_open else fitting(tool, handler, keywords))
    except Exception as error:  # the tool border
        log.exception("tool %r failed", name)
        return error_content("Tool execution failed", error)
    return value if isinstance(value, dict) and value.get("_multimodal") is True else normalise(value, name)


def call_now(tool: Registered, args: JsonObject, given: Mapping[str, Any]) -> Any:
    """The handler's own value: a sync handler in this very thread, an async one on the tools' loop."""
    handler = resolved(tool)
    if is_coroutine(tool, handler):
        return run_sync(awaited(handler, args, given), tool.traits.timeout_s)
    try:
        value = handler(args, **given)
    except SystemExit as error:
        raise left_with(error) from error
    if inspect.isawaitable(value):
        return run_sync(_finish(value), tool.traits.timeout_s)
    return value


def resolved(tool: Registered) -> Callable[..., Any]:
    """The real handler, imported now when it is a built-in that was not needed before."""
    if not tool.lazy:
        return tool.entry.handler
    load = getattr(tool.entry.handler, "load", None)
    return load() if load is not None else tool.entry.handler


def is_coroutine(tool: Registered, handler: Callable[..., Any]) -> bool:
    return tool.entry.is_async or _takes(handler).is_coroutine


def takes_context(handler: Callable[..., Any]) -> bool:
    return "ctx" in _takes(handler).names


async def awaited(handler: Callable[..., Any], args: JsonObject, keywords: Mapping[str, Any]) -> Any:
    """What an async handler returns; a plain value, should it not be one after all."""
    value = handler(args, **keywords)
    return await value if inspect.isawaitable(value) else value


async def _finish(value: Any) -> Any:
    return await value


def fitting(tool: Registered, handler: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the keywords that the handler takes."""
    takes = _takes(handler)
    wanted = takes.names
    if takes.is_open and tool.entry.name == "execute_code":
        wanted |= {"enabled_tools"}
    return {key: given[key] for key in wanted if key in given}


class _Takes(Struct, frozen=True):
    """How a handler is called: the keywords it is handed, whether it takes any, and whether it is awaited."""

    names: frozenset[str]
    is_open: bool
    is_coroutine: bool


@lru_cache(maxsize=1024)
def _takes(handler: Callable[..., Any]) -> _Takes:
    is_coroutine = inspect.iscoroutinefunction(handler)
    try:
        parameters = list(inspect.signature(handler).parameters.values())
    except (TypeError, ValueError):  # a builtin without a signature
        return _Takes(frozenset(), is_open=False, is_coroutine=is_coroutine)
    names = frozenset(
        parameter.name
        for parameter in parameters[1:]
        if parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    )
    is_open = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    return _Takes(names | _OPEN if is_open else names, is_open, is_coroutine)
