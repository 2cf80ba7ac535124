"""Definitions for callers outside a session, made once as long as nothing they depend on has changed."""

import os
import sys
import threading
from collections.abc import Iterable, Sequence
from copy import copy
from time import monotonic
from typing import Any, TypeAlias

from hermes.config import paths
from hermes.tools.registration.availability import CACHE_S
from hermes.tools.registration.definitions import load_home, offered, select
from hermes.tools.registration.groups import Groups, custom_groups
from hermes.tools.registry import registry
from hermes.types import JsonObject

_ENTRIES = 8
_LOOK_EVERY_S = 0.001  # how long what a look at the disk said may stand; a caller in a tight loop pays for one look

Key: TypeAlias = tuple[frozenset[str] | None, frozenset[str] | None, int, Any, bool]


class Memo:
    """The last few answers, keyed by the toolsets, the registry's generation, the configuration file and kanban.

    The newest is also `registry.recent`, as (until when nothing need be looked at, enabled, disabled, the list).
    """

    def __init__(self) -> None:
        self._made: dict[Key, tuple[float, list[JsonObject]]] = {}
        self._latest: list[JsonObject] = []
        self._lock = threading.Lock()  # guards _made

    @property
    def last_names(self) -> list[str]:
        """The tools of the last answer."""
        return [one["function"]["name"] for one in self._latest]

    def get(self, enabled: Iterable[str] | None, disabled: Iterable[str] | None) -> list[JsonObject]:
        """A fresh list of shared definitions."""
        now, generation = monotonic(), registry.generation
        names = None if enabled is None else list(enabled), list(disabled or ())
        key = (None if names[0] is None else frozenset(names[0]), frozenset(names[1]) or None)
        found = self._made.get((*key, generation, *_outside()))
        if found is None or now - found[0] > CACHE_S:
            made = make(*names, quiet=True)
            generation = registry.generation  # making them may have loaded tools
            with self._lock:
                while len(self._made) >= _ENTRIES:
                    del self._made[next(iter(self._made))]
                self._made[*key, generation, *_outside()] = (now, made)
        else:
            made = found[1]
        self._latest = made
        if isinstance(enabled, list | tuple | None) and isinstance(disabled, list | tuple | None):
            # Copies: the caller may change its lists before it asks again.
            registry.keep(generation, (now + _LOOK_EVERY_S, copy(enabled), copy(disabled), made))
        return made.copy()

    def loud(self, enabled: Iterable[str] | None, disabled: Iterable[str] | None) -> list[JsonObject]:
        """Worked out now, and said on stdout."""
        self._latest = make(None if enabled is None else list(enabled), list(disabled or ()), quiet=False)
        registry.keep(registry.generation, None)
        return self._latest.copy()


def make(enabled: Sequence[str] | None, disabled: Sequence[str], *, quiet: bool) -> list[JsonObject]:
    """The definitions, worked out now."""
    load_home(paths.hermes_home())
    unknown: list[str] = []
    names = select(Groups(registry, custom_groups(_settings())), enabled, disabled, unknown=unknown)
    found = offered(names, quiet=quiet)
    if not quiet:
        _show(enabled, disabled, unknown, found)
    return found


def _settings() -> Any:
    from hermes.config.load import load_settings  # reading the configuration is not always needed

    return load_settings().mapping


def _outside() -> tuple[Any, bool]:
    try:
        info = os.stat(paths.config_file(paths.hermes_home()))  # noqa: PTH116 - called very often
        stamp: tuple[int, int] | None = (info.st_mtime_ns, info.st_size)
    except OSError:
        stamp = None
    return stamp, bool(os.environ.get("HERMES_KANBAN_TASK"))


def _show(
    enabled: Sequence[str] | None, disabled: Sequence[str], unknown: Sequence[str], found: Sequence[JsonObject]
) -> None:
    lines = [f"Toolsets: {', '.join(enabled) if enabled is not None else 'all'}"]
    if disabled:
        lines.append(f"Without: {', '.join(disabled)}")
    lines += [f"Unknown toolset: {name}" for name in unknown]
    lines.append(f"Tools ({len(found)}): {', '.join(one['function']['name'] for one in found)}")
    sys.stdout.write("\n".join(lines) + "\n")
