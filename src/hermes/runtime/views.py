"""Views of tools that sessions of this process share: equal definitions are parsed and compiled once."""

import threading
from collections import OrderedDict

from hermes.tools.registry import registry
from hermes.tools.view import SessionView

MAX_VIEWS = 16


class Views:
    """A small cache by stored definitions; a change of the registry makes it read anew."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int], SessionView] = OrderedDict()
        self._lock = threading.Lock()  # guards _kept

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
