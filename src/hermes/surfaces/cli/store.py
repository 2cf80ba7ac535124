"""The sessions of the home, for commands that read or change them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hermes.config import paths
from hermes.errors import SessionNotFound
from hermes.state.stores import has_sessions, place_of
from hermes.surfaces.cli.context import Cli

if TYPE_CHECKING:
    from hermes.state import SessionDB


@contextmanager
def open_sessions(cli: Cli, *, make: bool = False) -> "Iterator[SessionDB | None]":
    """The home's sessions; None when there is no store yet, unless one is to be made. Looking never makes one."""
    place = place_of(cli.home)
    if not make and not has_sessions(place):
        yield None
        return
    from hermes.state import SessionDB  # paid by whoever has sessions

    paths.made(cli.home)
    with SessionDB(place) as db:
        yield db


def no_sessions(name: str | None) -> SessionNotFound:
    """The error for a session asked of a home that has none."""
    asked = f"there is no session {name!r}" if name else "there are no sessions yet"
    return SessionNotFound(f"{asked}; start one with: hermes chat -q …")
