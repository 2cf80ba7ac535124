"""The tools that a context engine of one's own brings: they live in the session's view, and it answers their calls."""

import inspect
import logging
from collections.abc import Callable
from typing import Any

from hermes.seams import ContextEngine
from hermes.tools.registry import Registered, ToolEntry, registry

TOOLSET = "context_engine"
log = logging.getLogger("hermes")


def engine_tools(engine: ContextEngine | None) -> dict[str, Registered]:
    """By name. One whose name belongs to another tool, or that has none, is left out and logged."""
    schemas = getattr(engine, "get_tool_schemas", None)
    if schemas is None:
        return {}
    found: dict[str, Registered] = {}
    try:
        listed = list(schemas())
    except Exception:  # the border to an engine of one's own
        log.exception("context engine %r failed in get_tool_schemas", getattr(engine, "name", "?"))
        return {}
    for one in listed:
        schema = one.get("function", one) if isinstance(one, dict) else {}
        name = schema.get("name") if isinstance(schema, dict) else None
        if not isinstance(name, str) or registry.get(name) is not None:
            log.warning("a tool of the context engine is left out: its name is %r", name)
            continue
        handle: Callable[..., Any] = engine.handle_tool_call  # type: ignore[union-attr]  # it has schemas, so it has this
        is_async = inspect.iscoroutinefunction(handle)
        entry = ToolEntry(name, TOOLSET, dict(schema), _handler(handle, name), is_async=is_async)
        found[name] = Registered(entry, source=f"context engine {getattr(engine, 'name', '')}")
    return found


def _handler(handle: Callable[..., Any], name: str) -> Callable[..., Any]:
    def call(args: dict[str, Any], *, session_id: str | None = None, **keywords: Any) -> Any:
        return handle(name, args, session_id=session_id, **keywords)

    return call
