"""The tools that a session is offered. Sessions of this process share equal views: chosen, parsed and compiled once."""

import os
import threading
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from hermes.config.sections import agent as agent_section
from hermes.config.sections import prompt as prompt_section
from hermes.config.settings import Settings
from hermes.ops import SessionRecord
from hermes.tools.registration.availability import CACHE_S
from hermes.tools.registration.definitions import (
    ViewRequest,
    has_foreign_files,
    permitted,
    project_of,
    session_tools,
)
from hermes.tools.registration.manifest import ensure_builtins
from hermes.tools.registry import Registered, registry
from hermes.tools.view import SessionView

if TYPE_CHECKING:
    from hermes.runtime.context import Services
    from hermes.runtime.options import AgentOptions

MAX_VIEWS = 16


class _ToolChoice(Struct, frozen=True):
    """What a new session was offered, and all that the choice hung on."""

    until: float  # then the tools have to be asked again whether they are available
    settings: Any
    rest: tuple[Any, ...]
    definitions: str


class ToolViewCache:
    """A small cache by stored definitions; a change of the registry makes it read anew."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int], SessionView] = OrderedDict()
        self._lock = threading.Lock()  # guards _kept
        self._choice: _ToolChoice | None = None  # the newest
        self._permits: tuple[Any, tuple[Any, ...], frozenset[str] | None] | None = None  # the newest, as above

    def of(self, definitions: str) -> SessionView:
        """The view of these stored definitions over the tools of this process."""
        key = (definitions, registry.generation)
        with self._lock:
            found = self._kept.pop(key, None)
            if found is None:
                found = SessionView.from_json(definitions, registry)
            self._kept[key] = found
            while len(self._kept) > MAX_VIEWS:
                self._kept.popitem(last=False)
            return found

    def chosen(self, request: ViewRequest) -> str | None:
        """What the last new session was offered, if this one asks for the same and nothing has changed since."""
        last = self._choice
        if last is None or last.settings is not request.settings or monotonic() > last.until:
            return None
        return last.definitions if last.rest == _conditions(request) else None

    def choose(self, request: ViewRequest, definitions: str) -> None:
        """Offer the same to the next session that asks for the same."""
        self._choice = _ToolChoice(monotonic() + CACHE_S, request.settings, _conditions(request), definitions)

    def within(self, request: ViewRequest, definitions: str) -> SessionView:
        """The view of these stored definitions, of which only what is asked for now may run."""
        if not request.is_restricted:
            return self.of(definitions)
        conditions, known = _conditions(request), self._permits
        if known is None or known[0] is not request.settings or known[1] != conditions:
            known = self._permits = (request.settings, conditions, permitted(request))
        return self.of(definitions).restricted(known[2])


class SessionTools:
    """The views of one agent's session."""

    def __init__(self, cache: ToolViewCache, options: "AgentOptions", settings: Settings, services: "Services") -> None:
        self._cache = cache
        self._wanted = options.tools
        self._only = None if options.parent is None else options.parent.tools
        self._settings = settings
        self._services = services
        self._last: tuple[object, tuple[Any, ...], SessionView] | None = None  # of tools that parts have brought
        # Where the session stood when the agent was made; a `cd` later moves no tools.
        environment = services.environment
        is_here = environment.kind == "local"
        self._project = project_of(Path(environment.cwd), settings.home) if is_here else None

    @property
    def is_lean(self) -> bool:
        """Whether a session that begins now gets the lean profile."""
        return self._settings.of(prompt_section.Section).is_lean(self._services.window())

    async def view(self, record: SessionRecord | None) -> SessionView:
        """The session's frozen view: as it was stored, else made now from the toolsets asked for.

        What was stored stays on offer; what is asked for now, and what the settings switch off, decides what may run.
        """
        stored = record.tool_definitions if record else None
        request = self.asked(await self._services.parts.tools(record), is_new=not stored)
        is_shared = not has_foreign_files(self._settings.home, self._project)
        if is_shared and not request.brought:
            if stored:
                if not registry.is_filled:
                    ensure_builtins()
                return self._cache.within(request, stored)
            if (chosen := self._cache.chosen(request)) is not None:
                return self._cache.of(chosen)
        made_of, last = (stored, *_conditions(request)), self._last
        if stored and is_shared and last is not None and last[0] is request.brought and last[1] == made_of:
            return last[2]
        # In a thread: it may execute tool files and wait for availability checks.
        definitions, own = await self._services.pool.run(session_tools, request, stored)
        if is_shared and not request.brought and registry.generation == made_of[1]:
            self._cache.choose(request, definitions)
        view = SessionView.from_json(definitions, registry, own) if own else self._cache.of(definitions)
        view = view.restricted(permitted(request, own)) if stored else view
        self._last = (request.brought, made_of, view)
        return view

    def asked(self, brought: Mapping[str, Registered], *, is_new: bool) -> ViewRequest:
        wanted = self._wanted
        off = self._settings.of(agent_section.Section).disabled_toolsets
        named = wanted.disabled_toolsets or ()
        return ViewRequest(
            home=self._settings.home,
            settings=self._settings.mapping,
            enabled=wanted.default_toolsets if is_new and wanted.enabled_toolsets is None else wanted.enabled_toolsets,
            disabled=tuple(dict.fromkeys((*named, *off))),
            project=self._project,
            window_tokens=self._services.window(),
            brought=brought,
            is_lean=is_new and self.is_lean,
            only=self._only,
        )


def _conditions(request: ViewRequest) -> tuple[Any, ...]:
    enabled = None if request.enabled is None else tuple(request.enabled)
    is_kanban = bool(os.environ.get("HERMES_KANBAN_TASK"))
    asked = enabled, tuple(request.disabled), request.window_tokens, request.is_lean, request.only
    return registry.generation, request.home, *asked, is_kanban
