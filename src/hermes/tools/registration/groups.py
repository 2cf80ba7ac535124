"""Toolsets: named groups of tools, the presets of each way in, and what a name resolves to."""

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from hermes.tools.registry import ToolRegistry, registry


class Toolset(TypedDict):
    """A group: tools by name, and other groups that belong to it."""

    description: str
    tools: list[str]
    includes: list[str]


def _group(description: str, *tools: str, includes: Iterable[str] = ()) -> Toolset:
    return {"description": description, "tools": list(tools), "includes": list(includes)}


class ToolsetTable(NamedTuple):
    """The usual tools, the toolsets, and the tools by older names of toolsets."""

    core: list[str]
    toolsets: dict[str, Toolset]
    legacy: dict[str, list[str]]


@cache
def table() -> ToolsetTable:
    """The one of this process, to which a caller may add; toolsets.txt says what its rows mean."""
    lists: dict[str, list[str]] = {}
    toolsets: dict[str, Toolset] = {}
    legacy: dict[str, list[str]] = {}
    for row in (Path(__file__).parent / "toolsets.txt").read_text(encoding="utf-8").splitlines():
        if not row or row.startswith("#"):
            continue
        head, _, given = row.rpartition(":")
        name, _, description = head.partition(": ")
        tools = [tool for word in given.split() if word[0] != "+" for tool in lists.get(word, (word,))]
        if name.startswith("@"):
            lists[name] = tools
        elif name.endswith(" ="):
            legacy[name[:-2]] = tools
        else:
            includes = (word[1:] for word in given.split() if word[0] == "+")
            toolsets[name] = _group(description, *tools, includes=includes)
    return ToolsetTable(lists["@core"], toolsets, legacy)


EVERYTHING = frozenset({"all", "*"})


class Groups:
    """Toolsets by name: the static ones, a home's own, and those that exist only because a tool registered so."""

    def __init__(self, tools: ToolRegistry, custom: Mapping[str, Toolset] | None = None) -> None:
        self._tools = tools
        self._sets: Mapping[str, Toolset] = {**table().toolsets, **custom} if custom else table().toolsets

    def names(self) -> list[str]:
        """Every valid name but aliases, `all` and `*`."""
        return sorted({*self._sets, *self._tools.get_registered_toolset_names()})

    def get(self, name: str) -> Toolset | None:
        """The group with everything that is registered under its name; None when there is no such group."""
        name = self._tools.get_toolset_alias_target(name) or name if name not in self._sets else name
        registered = self._tools.get_tool_names_for_toolset(name)
        static = self._sets.get(name)
        if static is not None:
            own = list(static["tools"])
            own += [tool for tool in registered if tool not in own]
            return {"description": static["description"], "tools": own, "includes": list(static["includes"])}
        if registered:
            return _group(f"Tools of {name}", *registered)
        platform = name.removeprefix("hermes-")
        if platform != name and (own := self._tools.get_tool_names_for_toolset(platform)):
            return _group(f"The usual tools and those of {platform}", *table().core, *own)
        return None

    def is_valid(self, name: str) -> bool:
        return name in EVERYTHING or self.get(name) is not None

    def resolve(self, name: str, seen: set[str] | None = None) -> list[str]:
        """Every tool of the group and of the groups it includes, sorted. A circle adds nothing; unknown is empty."""
        seen = set() if seen is None else seen
        if name in EVERYTHING:
            return sorted({tool for each in self.names() for tool in self.resolve(each, set(seen))})
        if name in seen:
            return []
        seen.add(name)
        group = self.get(name)
        if group is None:
            return []
        found = set(group["tools"])
        for included in group["includes"]:
            found.update(self.resolve(included, seen))
        return sorted(found)

    def resolve_many(self, names: Iterable[str]) -> list[str]:
        return sorted({tool for name in names for tool in self.resolve(name)})

    def info(self, name: str) -> dict[str, Any] | None:
        group = _group("Every tool there is", includes=self.names()) if name in EVERYTHING else self.get(name)
        if group is None and name in table().legacy:
            group = _group("An older name", *table().legacy[name])
        if group is None:
            return None
        resolved = self.resolve(name) or sorted(group["tools"])
        return {
            "name": name,
            "description": group["description"],
            "direct_tools": group["tools"],
            "includes": group["includes"],
            "resolved_tools": resolved,
            "tool_count": len(resolved),
            "is_composite": bool(group["includes"]),
        }


def groups(custom: Mapping[str, Toolset] | None = None) -> Groups:
    """The groups over the process's registry."""
    return Groups(registry, custom)


def custom_groups(settings: Mapping[str, Any]) -> dict[str, Toolset]:
    """The groups that `tools.custom_toolsets` of the configuration names."""
    section = settings.get("tools")
    wanted = section.get("custom_toolsets") if isinstance(section, Mapping) else None
    return {
        name: _group(str(one.get("description", "")), *one.get("tools", ()), includes=one.get("includes", ()))
        for name, one in (wanted or {}).items()
    }
