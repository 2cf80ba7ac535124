"""Views of tools that sessions of this process share: equal definitions are chosen, parsed and compiled once."""

import os
import threading
from collections import OrderedDict
from time import monotonic
from typing import Any

from msgspec import Struct

from hermes.tools.registration.availability import CACHE_S
from hermes.tools.registration.definitions import ViewRequest, permitted
from hermes.tools.registry import registry
from hermes.tools.view import SessionView

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


def _conditions(request: ViewRequest) -> tuple[Any, ...]:
    enabled = None if request.enabled is None else tuple(request.enabled)
    is_kanban = bool(os.environ.get("HERMES_KANBAN_TASK"))
    return registry.generation, request.home, enabled, tuple(request.disabled), request.window_tokens, is_kanban
