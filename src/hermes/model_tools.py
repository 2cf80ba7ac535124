"""Tool definitions and direct calls under the contract's names; the work is in `hermes.tools`."""

import os
from collections.abc import Iterable
from time import monotonic
from typing import Any

from hermes.config.paths import config_file, hermes_home
from hermes.schemas import tidy
from hermes.tools.calling.arguments import coerce_args
from hermes.tools.calling.outside_agent import DirectCall, outside
from hermes.tools.registration.definitions import load_home
from hermes.tools.registration.definitions_cache import Memo
from hermes.tools.registry import ToolRegistry, offered_schema, registry

__all__ = [
    "check_tool_availability",
    "check_toolset_requirements",
    "close_task",
    "coerce_tool_args",
    "get_all_tool_names",
    "get_available_toolsets",
    "get_tool_definitions",
    "get_toolset_for_tool",
    "handle_function_call",
]

_memo = Memo()  # a cache, and the names it answered last


def get_tool_definitions(
    enabled_toolsets: Iterable[str] | None = None,
    disabled_toolsets: Iterable[str] | None = None,
    quiet_mode: bool = False,
) -> list[dict[str, Any]]:
    """The tools of these toolsets that are available, as function definitions sorted by name.

    The list is the caller's own; the definitions in it are shared. Without `quiet_mode` it says on stdout what it
    found.
    """
    if not quiet_mode:
        return _memo.loud(enabled_toolsets, disabled_toolsets)
    recent = registry.recent
    if recent is not None:
        until, enabled_then, disabled_then, made = recent
        if enabled_toolsets == enabled_then and disabled_toolsets == disabled_then and monotonic() < until:
            return made.copy()  # type: ignore[no-any-return]  # the memo put it there
    return _memo.get(enabled_toolsets, disabled_toolsets)


def handle_function_call(  # noqa: PLR0913, PLR0917 - the contract's parameters
    function_name: str,
    function_args: dict[str, Any],
    task_id: str | None = None,
    tool_call_id: str | None = None,
    session_id: str | None = None,
    user_task: str | None = None,
    enabled_tools: list[str] | None = None,
    skip_pre_tool_call_hook: bool = False,
) -> str:
    """Run one tool from outside an agent and return its result text; errors are JSON text, never raised.

    Calls with one `task_id` share a working directory, shell variables and background processes. Nobody can be
    asked, so what needs approval is denied.
    """
    return outside.call(
        DirectCall(
            name=function_name,
            args=function_args,
            task_id=task_id,
            tool_call_id=tool_call_id,
            session_id=session_id,
            user_task=user_task,
            enabled_tools=enabled_tools if enabled_tools is not None else _memo.last_names,
            skip_pre_hook=skip_pre_tool_call_hook,
        )
    )


def close_task(task_id: str) -> None:
    """End the shell and the children that calls with this `task_id` left open."""
    outside.close_task(task_id)


def coerce_tool_args(tool_name: str, args: Any) -> Any:
    """`args` in the types the tool's schema asks for; what does not fit, or is unknown, stays as it is."""
    entry = _tools().get_entry(tool_name)
    return coerce_args(args, tidy(offered_schema(entry).get("parameters"))) if entry else args


def get_all_tool_names() -> list[str]:
    """Every registered tool, sorted."""
    return _tools().get_all_tool_names()


def get_toolset_for_tool(name: str) -> str | None:
    """The toolset a tool is registered in."""
    return _tools().get_toolset_for_tool(name)


def get_available_toolsets() -> dict[str, dict[str, Any]]:
    """Every registered toolset with its tools and whether it is available."""
    return _tools().get_available_toolsets()


def check_toolset_requirements() -> dict[str, bool]:
    """Whether each registered toolset is available."""
    return _tools().check_toolset_requirements()


def __getattr__(name: str) -> Any:
    if name == "TOOL_TO_TOOLSET_MAP":
        return _tools().get_tool_to_toolset_map()
    if name == "TOOLSET_REQUIREMENTS":
        return _tools().get_toolset_requirements()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def check_tool_availability(quiet: bool = False) -> tuple[list[str], list[dict[str, Any]]]:
    """The available toolsets, and the others with what they need."""
    return _tools().check_tool_availability(quiet)


def _tools() -> ToolRegistry:
    """The registry, with the tools of the home and of its plugins in it."""
    load_home(hermes_home())
    return registry


def _bring_plugins() -> None:
    """Have the tools and hooks of plugins known; looked at again when config.yaml has changed."""
    home = hermes_home()
    try:
        info = os.stat(config_file(home))  # noqa: PTH116 - asked before every call
        mark = (str(home), info.st_mtime_ns, info.st_size)
    except OSError:
        mark = (str(home), 0, 0)
    if mark not in _brought:
        _brought[:] = [mark]
        from hermes.extensions.plugins.joints import ground  # paid by the first call of the process

        ground().bring()


_brought: list[tuple[str, int, int]] = []  # a cache: the home and the settings whose plugins are known
registry.bring = _bring_plugins
