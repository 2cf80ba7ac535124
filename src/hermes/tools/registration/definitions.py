"""What is offered to a model: which tools, in which order, with which schemas."""

import logging
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from hermes.config.paths import PROJECT_TOOLS
from hermes.schemas import tidy
from hermes.tools.registration.groups import Groups, Toolset, custom_groups, table
from hermes.tools.registration.manifest import ensure_builtins
from hermes.tools.registration.tool_search import divided
from hermes.tools.registry import Registered, ToolRegistry, registry
from hermes.tools.view import SessionView, definition_of
from hermes.types import JsonObject

if TYPE_CHECKING:
    from hermes.tools.registration.user_files import LoadedFile

log = logging.getLogger(__name__)

UNKNOWN_WINDOW = 128_000  # of a model that nothing is known of
_OWN = frozenset({"home", "project", "plugin"})
_ENGINE = "context_engine"  # whoever gives an agent an engine means its tools, whichever others are asked for
_WEB_TOOLS = ("web_search", "web_extract")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


class ViewRequest(Struct, frozen=True, kw_only=True):
    """What a session asks to be offered."""

    home: Path
    settings: Mapping[str, Any]
    enabled: Sequence[str] | None = None  # None is all toolsets
    disabled: Sequence[str] = ()
    project: Path | None = None  # from `project_of`; its own tools join the view when the user trusts it
    window_tokens: int | None = None  # what the model can read; many foreign tools are searched instead of listed
    brought: Mapping[str, Registered] = {}  # by a part of the agent, for this session; chosen by their toolsets
    is_lean: bool = False  # few tools, in few words
    only: frozenset[str] | None = None  # tools beside which nothing is chosen: those that a parent lets its child have

    @property
    def is_restricted(self) -> bool:
        """Whether it leaves any tool out."""
        return self.enabled is not None or bool(self.disabled) or self.only is not None

    def chosen(self, names: set[str]) -> set[str]:
        """`names` without what is not to be chosen."""
        return names if self.only is None else names & self.only


def session_view(request: ViewRequest, stored: str | None = None) -> SessionView:
    """The session's frozen view: as it was stored with the session, within what is asked for now; else made now."""
    text, own = session_tools(request, stored)
    view = SessionView.from_json(text, registry, own)
    return view.restricted(permitted(request, own)) if stored else view


def session_tools(request: ViewRequest, stored: str | None = None) -> tuple[str, dict[str, Registered]]:
    """The session's definitions as they are stored with it, and the tools that live in its view only.

    Built-ins are known from their manifest; files of the home and of a trusted project are executed when a toolset of
    theirs is asked for. Project tools live in this view only.
    """
    ensure_builtins()
    custom = custom_groups(request.settings)
    own: dict[str, Registered] = {}
    if has_foreign_files(request.home, request.project):
        own = _load_foreign(request, custom)
    own |= _of_their_own(request.brought, own)
    if stored:
        return stored, own
    unknown: list[str] = []
    names = request.chosen(select(Groups(registry, custom), request.enabled, request.disabled, own, unknown))
    _tell_unknown(unknown, request.settings)
    tools = {**registry.snapshot(), **own}
    if request.is_lean:
        from hermes.tools.registration.lean import lean_definition, lean_names  # for small models

        lean = lean_names(names, request.enabled)
        all_of_them = [lean_definition(definition_of(one["function"])) for one in offered(lean, own)]
    else:
        all_of_them = [definition_of(one["function"]) for one in offered(names, own)]
    listed, deferred = divided(all_of_them, tools, request.settings, request.window_tokens or UNKNOWN_WINDOW)
    return SessionView(listed, tools, deferred).to_json(), own


def permitted(request: ViewRequest, own: Mapping[str, Registered] | None = None) -> frozenset[str] | None:
    """The tools that may run now, whatever a session was offered when it began; None when all may."""
    if not request.is_restricted:
        return None
    unknown: list[str] = []
    names = select(Groups(registry, custom_groups(request.settings)), request.enabled, request.disabled, own, unknown)
    _tell_unknown(unknown, request.settings)
    return frozenset(request.chosen(names))


def _of_their_own(brought: Mapping[str, Registered], theirs: Mapping[str, Registered]) -> dict[str, Registered]:
    """The tools of parts but those whose name a file has, which may have been executed only now."""
    taken = [name for name in brought if name in theirs or registry.get(name) is not None]
    for name in taken:
        log.warning("the tool %r of a part is left out: its name is taken by a tool file", name)
    return {name: tool for name, tool in brought.items() if name not in taken}


def _tell_unknown(toolsets: Sequence[str], settings: Mapping[str, Any]) -> None:
    servers = settings.get("mcp_servers") or {}
    toolsets = [name for name in toolsets if name not in servers and name.removeprefix("mcp-") not in servers]
    if toolsets:
        log.warning("no toolset is named %s; hermes tools shows what there is", ", ".join(map(repr, toolsets)))


def has_foreign_files(home: Path, project: Path | None) -> bool:
    """Whether there are tool files that `session_tools` would look at, and perhaps execute."""
    return project is not None or os.access(f"{home}/tools/", os.F_OK)  # asked at the start of every turn


def project_of(folder: Path, home: Path) -> Path | None:
    """The project that `folder` lies in: the nearest folder upwards with tool files of its own."""
    place = str(folder)
    while True:
        tools = f"{place}/{PROJECT_TOOLS}"  # as text: every new session asks, for every folder above it
        # Those of the home, beside the user's own projects, belong to none of them.
        if os.path.isdir(tools) and os.path.realpath(tools) != os.path.realpath(home / "tools"):  # noqa: PTH112
            return Path(place)
        if (above := os.path.dirname(place)) == place:  # noqa: PTH120
            return None
        place = above


def _load_foreign(request: ViewRequest, custom: Mapping[str, Toolset]) -> dict[str, Registered]:
    """Execute the files of the home and of the project; the project's tools."""
    from hermes.tools.registration.user_files import project_tools  # paid by who has such files

    own: dict[str, Registered] = {}
    found = load_home(request.home, _names_asked(request.enabled, custom))
    if request.project is not None:
        own, theirs = project_tools(request.project, request.settings)
        found.broken += theirs.broken
    for broken in found.broken:
        log.warning("tool file %s is left out: line %s: %s", broken.path, broken.line or "?", broken.error)
    return own


def load_home(home: Path, wanted: Iterable[str] | None = None) -> "LoadedFile":
    """Execute the tool files of a home; with `wanted`, only those that may belong to one of these toolsets."""
    from hermes.tools.registration.user_files import load_folder  # see above

    if registry.bring is not None:
        registry.bring()
    return load_folder(home / "tools", "home", registry, wanted)


def _names_asked(enabled: Sequence[str] | None, custom: Mapping[str, Toolset]) -> frozenset[str] | None:
    """The toolsets a foreign file must name to be wanted; None when any will do.

    A preset takes the user's own tools along, and a custom group may name any of them.
    """
    if enabled is None or any(_takes_own(name) or name in custom for name in enabled):
        return None
    return frozenset(enabled)


def _takes_own(name: str) -> bool:
    return name in ("all", "*") or name.startswith("hermes-")


def select(
    sets: Groups,
    enabled: Sequence[str] | None,
    disabled: Iterable[str] = (),
    own: Mapping[str, Registered] | None = None,
    unknown: list[str] | None = None,
) -> set[str]:
    """The names that the toolsets come to: enabled ones, or all, less the disabled ones.

    The user's own tools and those of the agent's parts belong to every `hermes-*` preset. Names that mean nothing are
    added to `unknown`.
    """
    own = own or {}
    tools = {**registry.snapshot(), **own}
    names: set[str] = set()
    if enabled is None:
        names.update(tools, sets.resolve("all"))
    else:
        for name in enabled:
            names.update(_resolved(sets, name, tools, unknown))
        if any(_takes_own(name) for name in enabled):
            names.update(name for name, tool in tools.items() if name in own or tool.origin in _OWN)
        names.update(name for name, tool in own.items() if tool.entry.toolset == _ENGINE)
        if os.environ.get("HERMES_KANBAN_TASK"):
            names.update(sets.resolve("kanban"))
    for name in disabled:
        names.difference_update(_resolved(sets, name, tools, unknown))
    return names


def _resolved(sets: Groups, name: str, tools: Mapping[str, Registered], unknown: list[str] | None) -> Iterable[str]:
    own = [tool for tool, one in tools.items() if one.entry.toolset == name]
    if sets.is_valid(name) or own:
        return [*sets.resolve(name), *own]
    if named := [tool for tool, one in tools.items() if one.entry.toolset == f"mcp-{name}"]:
        return named  # by the server's name
    if name in table().legacy:
        return table().legacy[name]
    if unknown is not None:
        unknown.append(name)
    return []


def offered(
    names: Iterable[str], own: Mapping[str, Registered] | None = None, *, quiet: bool = True
) -> list[JsonObject]:
    """The available ones of `names` as definitions, sorted by name, with schemas that fit what else is offered."""
    wanted = set(names)
    found = registry.get_definitions(wanted - set(own or ()), quiet)
    if own:
        local = ToolRegistry()
        for tool in own.values():
            local.add(tool)
        found = sorted(
            [*found, *local.get_definitions(wanted & own.keys(), quiet)], key=lambda one: str(one["function"]["name"])
        )
    survivors = frozenset(str(one["function"]["name"]) for one in found)
    refined: list[JsonObject] = []
    for one in found:
        schema = _refined(one["function"], survivors, own or {})
        sound = _sound(schema) if schema is not None else None
        if sound is not None:
            refined.append({"type": "function", "function": sound})
    return refined


def _sound(schema: JsonObject) -> JsonObject | None:
    """The schema with parameters in the usual shape; None for one that is no JSON, which would break every request."""
    try:
        # There and back: what is offered is plain JSON, and belongs to nobody who could change it later.
        data = msgspec.json.encode({**schema, "parameters": tidy(schema.get("parameters"))})
        sound: JsonObject = msgspec.json.decode(data)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        log.warning("tool %r is left out: its schema is no JSON (%s: %s)", schema["name"], type(error).__name__, error)
        return None
    return sound


def _refined(schema: JsonObject, survivors: frozenset[str], own: Mapping[str, Registered]) -> JsonObject | None:
    name = str(schema["name"])
    tool = own.get(name) or registry.get(name)
    if tool is not None and tool.traits.refine is not None:
        try:
            changed = tool.traits.refine(schema, survivors)
        except Exception:  # the border to a tool author's code; the schema as it is still stands
            log.warning("refining the schema of tool %r failed; it is offered as registered", name, exc_info=True)
            return schema
        return {**changed, "name": name} if changed is not None else None
    if name == "browser_navigate" and not survivors.intersection(_WEB_TOOLS):
        return {**schema, "description": _without_mentions(str(schema.get("description") or ""))}
    return schema


def _without_mentions(text: str) -> str:
    """`text` less the sentences that recommend tools which are not there."""
    kept = [one for one in _SENTENCE.split(text) if not any(tool in one for tool in _WEB_TOOLS)]
    return " ".join(kept)
