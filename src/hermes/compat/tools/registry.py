"""`tools.registry`."""

from hermes.tools.registration.discovery import discover_builtin_tools
from hermes.tools.registry import ToolEntry, ToolRegistry, invalidate_check_fn_cache, registry, tool_error, tool_result

__all__ = [
    "ToolEntry",
    "ToolRegistry",
    "discover_builtin_tools",
    "invalidate_check_fn_cache",
    "registry",
    "tool_error",
    "tool_result",
]
