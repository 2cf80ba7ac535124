"""The lean profile: the tools that a model with a small window is offered, and the few words they are offered with."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from hermes.tools.registration.groups import table
from hermes.types import ToolDefinition

LEAN_TOOLSETS: Final = ("file", "terminal", "todo")
_TOOL_CHARS = 240
_FIELD_CHARS = 100
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")


def lean_names(names: Iterable[str], enabled: Iterable[str] | None) -> set[str]:
    """Those of `names` that are on the lean list, and those whose toolset was asked for by its own name."""
    asked = {tool for one in enabled or () if not _is_preset(one) for tool in _tools_of(one)}
    return set(names) & ({tool for one in LEAN_TOOLSETS for tool in _tools_of(one)} | asked)


def lean_definition(tool: ToolDefinition) -> ToolDefinition:
    """The tool with the same parameters and few words."""
    return replace(tool, description=_short(tool.description, _TOOL_CHARS), parameters=_lean_schema(tool.parameters))


def _is_preset(name: str) -> bool:
    return name in ("all", "*") or name.startswith("hermes-")


def _tools_of(name: str) -> list[str]:
    toolsets = table().toolsets
    return toolsets[name]["tools"] if name in toolsets else [name]


def _lean_schema(schema: Any) -> Any:
    """What is said about a parameter, cut to its first sentence; what it may be, as it was."""
    if isinstance(schema, list):
        return [_lean_schema(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    lean: dict[str, Any] = {}
    for name, value in schema.items():
        if name == "properties" and isinstance(value, Mapping):  # a parameter may be called `description`, too
            lean[name] = {key: _lean_schema(one) for key, one in value.items()}
        elif name == "description" and isinstance(value, str):
            lean[name] = _short(value, _FIELD_CHARS)
        elif name in ("title", "examples"):
            continue
        else:
            lean[name] = _lean_schema(value) if name not in ("enum", "const", "default", "required") else value
    return lean


def _short(text: str, limit: int) -> str:
    first = _SENTENCE_END.split(text.strip(), maxsplit=1)[0]
    return first if len(first) <= limit else first[: limit - 1].rsplit(" ", 1)[0] + "…"
