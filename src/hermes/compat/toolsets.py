"""`toolsets`."""

from hermes.toolsets import (
    TOOLSETS,
    create_custom_toolset,
    get_all_toolsets,
    get_toolset,
    get_toolset_info,
    get_toolset_names,
    resolve_multiple_toolsets,
    resolve_toolset,
    validate_toolset,
)

__all__ = [
    "TOOLSETS",
    "create_custom_toolset",
    "get_all_toolsets",
    "get_toolset",
    "get_toolset_info",
    "get_toolset_names",
    "resolve_multiple_toolsets",
    "resolve_toolset",
    "validate_toolset",
]
