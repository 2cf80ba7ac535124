"""`model_tools`."""

from hermes.model_tools import (
    check_tool_availability,
    check_toolset_requirements,
    coerce_tool_args,
    get_all_tool_names,
    get_available_toolsets,
    get_tool_definitions,
    get_toolset_for_tool,
    handle_function_call,
)

__all__ = [
    "check_tool_availability",
    "check_toolset_requirements",
    "coerce_tool_args",
    "get_all_tool_names",
    "get_available_toolsets",
    "get_tool_definitions",
    "get_toolset_for_tool",
    "handle_function_call",
]
