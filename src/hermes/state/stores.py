"""Which store keeps the sessions: each kind is a folder of this package, named like the scheme of its addresses.

Without an address it is SQLite, in `state.db` of the home. `state.dsn` names another one; an address whose kind is not
here counts for nothing, and `hermes config check` says so.
"""

import functools
import importlib
import os
from collections.abc import Callable, Set
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from hermes.config import paths
from hermes.errors import StoreUnavailable

if TYPE_CHECKING:
    from hermes.state.queries import SessionStore

Durability: TypeAlias = Literal["power", "process"]
OpenStore: TypeAlias = "Callable[[Path | str, Durability], SessionStore]"

DEFAULT = "sqlite"
added: dict[str, OpenStore] = {}  # kinds that are no folder here, such as a plugin's


def open_store(place: Path | str, durability: Durability = "power") -> "SessionStore":
    """The store at a file or an address, which is made when it is not there; whoever opens it closes it."""
    kind = _kind_of(place) or DEFAULT
    if kind not in _kinds():
        raise StoreUnavailable(f"there is no store for {kind}:// addresses; there are: {', '.join(sorted(_kinds()))}")
    opener: OpenStore = added.get(kind) or importlib.import_module(f"hermes.state.{kind}").open_store
    return opener(place, durability)


def place_of(home: Path) -> Path | str:
    """Where the sessions of a home are, for `open_store`: its own file says so, also to a run that ignores that."""
    others = _kinds() - {DEFAULT}
    if others:  # else no address is of a kind that is here, and nobody pays for reading it
        from hermes.config.load import load_settings  # as above
        from hermes.config.sections.state import Section  # as above

        address = load_settings(home).of(Section).dsn
        if _kind_of(address) in others:
            return address
    return paths.state_file(home)


def has_sessions(place: Path | str) -> bool:
    """Whether there is a store already, as far as can be told without opening it."""
    return not isinstance(place, Path) or paths.has_sessions(place.parent)


def _kind_of(place: Path | str) -> str:
    kind, mark, _ = str(place).partition("://")
    return kind if mark else ""


def _kinds() -> Set[str]:
    return _folders() | added.keys()


@functools.cache
def _folders() -> frozenset[str]:
    with os.scandir(Path(__file__).parent) as entries:
        folders = [entry for entry in entries if entry.is_dir() and not entry.name.startswith("_")]
    # One without modules is what a removed package left behind.
    return frozenset(folder.name for folder in folders if Path(folder.path, "__init__.py").is_file())
