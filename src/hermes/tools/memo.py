"""Definitions for callers outside a session, made once as long as nothing they depend on has changed."""

import os
import sys
import threading
from collections.abc import Iterable
from copy import copy
from time import monotonic
from typing import Any, TypeAlias

from hermes.config import paths
from hermes.tools.availability import CACHE_S
from hermes.tools.definitions import default_groups, load_home, offered, select
from hermes.tools.manifest import ensure_builtins
from hermes.tools.registry import registry
from hermes.types import JsonObject

_ENTRIES = 8
_LOOK_EVERY_S = 0.001  # how long what a look at the disk said may stand; a caller in a tight loop pays for one look

Key: TypeAlias = tuple[frozenset[str] | None, frozenset[str] | None, int, Any, bool]


_Last: TypeAlias = tuple[float, int, Any, Any, list[JsonObject]]
_NOTHING: _Last = (-1.0, -1, None, None, [])


class Memo:
    """The last few answers; `last` is the newest, with what it depends on and until when nothing need be looked at.

    Keyed by the toolsets, the registry's generation, the configuration file and kanban."""

    def __init__(self) -> None:
        self._made: dict[Key, tuple[float, list[JsonObject], list[str]]] = {}
        self.last = _NOTHING
        self._outside: tuple[Any, bool] = (None, False)
        self.last_names: list[str] = []
        self._lock = threading.Lock()  # guards _made

    def get(self, enabled: Iterable[str] | None, disabled: Iterable[str] | None) -> list[JsonObject]:
        """A fresh list of shared definitions."""
        now = monotonic()
        made = self._looked_up(now, enabled, disabled)
        if isinstance(enabled, list | tuple | None) and isinstance(disabled, list | tuple | None):
            # Copies: the caller may change its lists before it asks again.
            self.last = (now + _LOOK_EVERY_S, registry.generation, copy(enabled), copy(disabled), made)
        return made.copy()

    def _looked_up(self, now: float, enabled: Iterable[str] | None, disabled: Iterable[str] | None) -> list[JsonObject]:
        self._outside = _outside()
        key = (
            None if enabled is None else frozenset(enabled),
            frozenset(disabled) if disabled else None,
            registry._generation,
            *self._outside,
        )
        found = self._made.get(key)
        if found is None or now - found[0] > CACHE_S:
            return self._make(key, enabled, disabled)
        self.last_names = found[2]
        return found[1]

    def clear(self) -> None:
        """Forget every answer."""
        with self._lock:
            self._made.clear()
        self.last = _NOTHING

    def _make(self, key: Key, enabled: Iterable[str] | None, disabled: Iterable[str] | None) -> list[JsonObject]:
        made = make(enabled, disabled, quiet=True)
        self._outside = _outside()
        key = (key[0], key[1], registry.generation, *self._outside)  # making them may have loaded tools
        self.last_names = [one["function"]["name"] for one in made]
        with self._lock:
            while len(self._made) >= _ENTRIES:
                del self._made[next(iter(self._made))]
            self._made[key] = (monotonic(), made, self.last_names)
        return made


def make(enabled: Iterable[str] | None, disabled: Iterable[str] | None, *, quiet: bool) -> list[JsonObject]:
    """The definitions, worked out now."""
    ensure_builtins()
    home = paths.hermes_home()
    load_home(home)
    unknown: list[str] = []
    names = select(
        default_groups(_settings()),
        None if enabled is None else list(enabled),
        list(disabled or ()),
        unknown=unknown,
    )
    found = offered(names, quiet=quiet)
    if not quiet:
        _show(enabled, disabled, unknown, found)
    return found


def _settings() -> Any:
    from hermes.config.load import load_settings  # noqa: PLC0415 - reading the configuration is not always needed

    return load_settings().mapping


def _outside() -> tuple[Any, bool]:
    try:
        info = os.stat(paths.config_file(paths.hermes_home()))  # noqa: PTH116 - called very often
        stamp: tuple[int, int] | None = (info.st_mtime_ns, info.st_size)
    except OSError:
        stamp = None
    return stamp, bool(os.environ.get("HERMES_KANBAN_TASK"))


def _show(
    enabled: Iterable[str] | None, disabled: Iterable[str] | None, unknown: list[str], found: list[JsonObject]
) -> None:
    lines = [f"Toolsets: {', '.join(enabled) if enabled is not None else 'all'}"]
    if disabled:
        lines.append(f"Without: {', '.join(disabled)}")
    lines += [f"Unknown toolset: {name}" for name in unknown]
    lines.append(f"Tools ({len(found)}): {', '.join(one['function']['name'] for one in found)}")
    sys.stdout.write("\n".join(lines) + "\n")
