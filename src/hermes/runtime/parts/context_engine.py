"""The tools that a context engine of one's own brings: they live in the session's view, and it answers their calls."""

import inspect
import logging
from collections.abc import Callable
from typing import Any

from hermes.ops import SessionRecord
from hermes.runtime.parts import Joining, Part
from hermes.seams import ContextEngine
from hermes.tools.registry import Registered, ToolEntry

TOOLSET = "context_engine"
log = logging.getLogger("hermes")


class EngineTools(Part):
    """For an agent whose caller brought an engine that has tools."""

    def __init__(self, engine: ContextEngine) -> None:
        self._engine = engine

    @classmethod
    def join(cls, agent: Joining) -> "EngineTools | None":
        engine = agent.options.session.context_engine
        return cls(engine) if engine is not None and hasattr(engine, "get_tool_schemas") else None

    async def tools(self, session: SessionRecord | None) -> list[Registered]:
        self.generation += 1  # an engine does not tell when its tools change: they are asked for in every turn
        engine: Any = self._engine
        handle = engine.handle_tool_call
        source, is_async = f"context engine {getattr(engine, 'name', '')}", inspect.iscoroutinefunction(handle)
        found: list[Registered] = []
        for one in engine.get_tool_schemas():
            schema = one.get("function", one) if isinstance(one, dict) else {}
            name = schema.get("name") if isinstance(schema, dict) else None
            if isinstance(name, str):
                entry = ToolEntry(name, TOOLSET, dict(schema), _handler(handle, name), is_async=is_async)
                found.append(Registered(entry, source=source))
            else:
                log.warning("a tool of the context engine is left out: its name is %r", name)
        return found


def _handler(handle: Callable[..., Any], name: str) -> Callable[..., Any]:
    def call(args: dict[str, Any], *, session_id: str | None = None, **keywords: Any) -> Any:
        return handle(name, args, session_id=session_id, **keywords)

    return call


part = EngineTools
