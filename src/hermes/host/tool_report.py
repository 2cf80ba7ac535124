"""Everything there is to say about the tools of a home, for `hermes tools`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from hermes.config.paths import PROJECT_TOOLS
from hermes.errors import UserError
from hermes.schemas import tidy
from hermes.tools.registration.definitions import load_home, project_of, select
from hermes.tools.registration.discovery import BrokenFile
from hermes.tools.registration.groups import Groups, custom_groups, table
from hermes.tools.registration.manifest import ensure_builtins
from hermes.tools.registration.user_files import LoadedFile, is_trusted, project_tools
from hermes.tools.registry import Registered, offered_schema, registry

_CALL_IT = "run: hermes tools enable"


@dataclass(frozen=True, slots=True)
class ToolLine:
    """One tool: what it is, where it comes from, and what a new session gets."""

    name: str
    toolset: str
    origin: str
    state: str  # offered, unavailable, off
    why: str
    source: str


@dataclass(frozen=True, slots=True)
class ToolReport:
    """All tools as a new session in this folder would see them, and what is wrong."""

    tools: list[ToolLine]
    problems: list[str]
    groups: Groups
    registered: Mapping[str, Registered]
    own: Mapping[str, Registered]  # those of the project, and of MCP servers
    servers: tuple[str, ...] = ()  # MCP servers, seen or not

    def counts(self) -> dict[str, int]:
        return {state: sum(tool.state == state for tool in self.tools) for state in ("offered", "unavailable", "off")}

    def as_data(self) -> dict[str, Any]:
        lines = [
            {"name": one.name, "toolset": one.toolset, "origin": one.origin, "state": one.state, "why": one.why}
            for one in self.tools
        ]
        return {"tools": lines, "counts": self.counts(), "problems": self.problems}

    def resolve(self, names: Sequence[str]) -> set[str]:
        """What a session with these toolsets would have, availability apart."""
        return select(self.groups, names, (), self.own)

    def is_toolset(self, name: str) -> bool:
        own = {tool.entry.toolset for tool in self.registered.values()}
        is_server = name in self.servers or name.removeprefix("mcp-") in self.servers
        return is_server or self.groups.is_valid(name) or name in table().legacy or name in own

    def check_toolsets(self, names: Iterable[str]) -> None:
        """`UserError` for the first name that is no toolset."""
        for name in names:
            if self.is_toolset(name):
                continue
            owner = next((tool.toolset for tool in self.tools if tool.name == name), None)
            if owner is not None:
                raise UserError(f"{name!r} is a tool; toolsets are switched, and its toolset is {owner!r}.")
            near = get_close_matches(name, self.toolset_names(), n=1)
            raise UserError(
                f"There is no toolset {name!r}." + (f" Did you mean {near[0]!r}?" if near else " See: hermes tools")
            )

    def toolset_names(self) -> list[str]:
        return sorted({*self.groups.names(), *(tool.entry.toolset for tool in self.own.values())})

    def known_names(self) -> list[str]:
        return [*self.registered, *self.toolset_names()]

    def describe(self, name: str) -> dict[str, Any] | None:
        """A tool, else a toolset, as plain facts."""
        line = next((one for one in self.tools if one.name == name), None)
        if line is not None:
            parameters = tidy(offered_schema(self.registered[name].entry).get("parameters"))
            return {
                "name": name,
                "description": self.registered[name].entry.description,
                "toolset": line.toolset,
                "origin": line.origin,
                "source": line.source,
                "state": line.state,
                "why": line.why,
                "parameters": parameters["properties"],
                "required": parameters.get("required", []),
            }
        return self._absent(name) or self._group(name)

    def _absent(self, name: str) -> dict[str, Any] | None:
        """A tool that toolsets name but nothing here brings."""
        owners = [
            one for one in table().toolsets if not one.startswith("hermes-") and name in table().toolsets[one]["tools"]
        ]
        if not owners or self.is_toolset(name):
            return None
        why = "no built-in, tool file or plugin on this machine brings it"
        return {"name": name, "toolset": owners[0], "state": "not installed", "why": why}

    def _of_server(self, name: str) -> dict[str, Any] | None:
        """The toolset of an MCP server, by its own name or the server's."""
        toolset = name if name.startswith("mcp-") else f"mcp-{name}"
        if toolset.removeprefix("mcp-") not in self.servers:
            return None
        by_state: dict[str, list[str]] = {}
        for line in self.tools:
            if line.toolset == toolset:
                by_state.setdefault(line.state, []).append(line.name)
        return {"name": toolset, "description": f"Tools of the MCP server {toolset[4:]}", **by_state}

    def _group(self, name: str) -> dict[str, Any] | None:
        found = self.groups.info(name)
        if found is None:
            return self._of_server(name)
        states = {line.name: line.state for line in self.tools}
        by_state: dict[str, list[str]] = {}
        for tool in found["resolved_tools"]:
            by_state.setdefault(states.get(tool, "not installed"), []).append(tool)
        return {**found, **by_state}


def toolsets_of(settings: Mapping[str, Any], platform: str | None) -> list[str]:
    """The toolsets of new sessions on the command line, or on another way in."""
    by_platform = settings.get("platform_toolsets") or {}
    usual = [f"hermes-{platform}"] if platform else settings.get("toolsets") or ()
    return list(by_platform.get(platform or "cli", usual))


def report(home: Path, settings: Mapping[str, Any], folder: Path, platform: str | None = None) -> ToolReport:
    """Load what a session in `folder` would load, and say what came of it."""
    broken = ensure_builtins()
    _prepare_plugins()
    mine = load_home(home)
    project = project_of(folder, home)
    own, theirs = project_tools(project, settings) if project is not None else ({}, LoadedFile())
    problems = [_broken_line(one) for one in (*broken, *mine.broken, *theirs.broken, *mine.idle, *theirs.idle)]
    problems += [
        f"{one.source}: the name {one.name!r} belongs to toolset {one.owner!r}, so this tool is left out"
        for one in (*mine.rejected, *theirs.rejected)
    ]
    if project is not None and not is_trusted(project, settings):
        problems.append(f"{project / PROJECT_TOOLS} is not used: run hermes tools trust, if you trust this folder")
    if settings.get("mcp_servers"):
        from hermes.tools.mcp.known_tools import known_tools  # paid by who has servers

        own = {**known_tools(home, settings), **own}
    groups = Groups(registry, custom_groups(settings))
    agent = settings.get("agent") or {}
    unknown: list[str] = []
    wanted = select(groups, toolsets_of(settings, platform), list(agent.get("disabled_toolsets") or ()), own, unknown)
    unknown += [
        one for group in custom_groups(settings).values() for one in group["includes"] if not groups.is_valid(one)
    ]
    servers = tuple(settings.get("mcp_servers") or ())
    for name in dict.fromkeys(unknown):
        if name in servers or name.removeprefix("mcp-") in servers:
            continue
        near = get_close_matches(name, groups.names(), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        problems.append(f"the configuration names a toolset {name!r} that does not exist{hint}")
    everything = {**registry.snapshot(), **own}
    lines = [_line(name, tool, name in wanted) for name, tool in sorted(everything.items())]
    return ToolReport(lines, problems, groups, everything, own, servers)


def variables_of_tool_files(home: Path, settings: Mapping[str, Any]) -> dict[str, str]:
    """The variables that the person's own tool files say they need, and a tool that does."""
    ensure_builtins()
    load_home(home)
    project = project_of(Path.cwd(), home)
    own = project_tools(project, settings)[0] if project is not None else {}
    tools = [one for one in (*registry.snapshot().values(), *own.values()) if one.origin in ("home", "project")]
    return {name: one.entry.name for one in reversed(tools) for name in one.entry.requires_env}


def _prepare_plugins() -> None:
    from hermes.runtime.setup.plugin_setup import prepare_outside  # for who looks at tools

    prepare_outside()


def _line(name: str, tool: Registered, is_wanted: bool) -> ToolLine:
    entry = tool.entry
    state, why = "offered", registry.checks.why_not(entry.check_fn)
    if why:
        state = "unavailable"
        if entry.requires_env:
            why += f" (needs {', '.join(entry.requires_env)})"
    elif not is_wanted:
        state, why = "off", f"{_CALL_IT} {entry.toolset}"
    return ToolLine(name, entry.toolset, tool.origin, state, why, tool.source)


def _broken_line(one: BrokenFile) -> str:
    place = f"{one.path}, line {one.line}" if one.line else str(one.path)
    return f"{place}: {one.error}"
