"""Toolsets under the contract's names; the work is in `hermes.tools.registration.groups`."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from hermes.tools.registration.groups import Toolset, groups, table

if TYPE_CHECKING:
    TOOLSETS: dict[str, Toolset]
    _HERMES_CORE_TOOLS: list[str]

__all__ = [
    "TOOLSETS",
    "_HERMES_CORE_TOOLS",
    "create_custom_toolset",
    "get_all_toolsets",
    "get_toolset",
    "get_toolset_info",
    "get_toolset_names",
    "resolve_multiple_toolsets",
    "resolve_toolset",
    "validate_toolset",
]


def get_toolset(name: str) -> Toolset | None:
    """The toolset with everything registered under its name, or None."""
    return groups().get(name)


def resolve_toolset(name: str, visited: set[str] | None = None) -> list[str]:
    """Every tool of the toolset and of those it includes, sorted; empty for an unknown name."""
    return groups().resolve(name, visited)


def resolve_multiple_toolsets(toolset_names: Iterable[str]) -> list[str]:
    """Every tool of these toolsets, sorted."""
    return groups().resolve_many(toolset_names)


def get_toolset_names() -> list[str]:
    """Every toolset there is, sorted."""
    return groups().names()


def get_all_toolsets() -> dict[str, Toolset]:
    """Every toolset by name."""
    found = {name: groups().get(name) for name in groups().names()}
    return {name: group for name, group in found.items() if group is not None}


def validate_toolset(name: str) -> bool:
    """Whether the name means anything."""
    return groups().is_valid(name)


def create_custom_toolset(name: str, description: str, tools: Iterable[str] = (), includes: Iterable[str] = ()) -> None:
    """Add a toolset for this process. For one that lasts, use `tools.custom_toolsets` in config.yaml."""
    table().toolsets[name] = {"description": description, "tools": list(tools), "includes": list(includes)}


def get_toolset_info(name: str) -> dict[str, Any] | None:
    """What a toolset holds and resolves to, or None."""
    return groups().info(name)


def __getattr__(name: str) -> Any:
    """The two tables, which are read when one of them is asked for."""
    if name in ("TOOLSETS", "_HERMES_CORE_TOOLS"):
        return table().toolsets if name == "TOOLSETS" else table().core
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
