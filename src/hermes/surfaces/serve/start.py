"""Start the server of a home, on its socket or on stdin and stdout."""

import asyncio
from collections.abc import Callable

from msgspec import Struct

from hermes.config import paths
from hermes.host.installation import Installation
from hermes.host.logs import logging_as_set
from hermes.host.wire.serve_folder import ServeFolder
from hermes.runtime.setup.process import shared
from hermes.surfaces.serve.listen import serve_socket, serve_stdio
from hermes.surfaces.serve.server import IDLE_S, SessionServer


class ServeOptions(Struct, frozen=True, kw_only=True):
    """How to serve. `tell` says a sentence to whoever started it."""

    is_stdio: bool = False
    stays: bool = False
    idle_s: float = IDLE_S
    tell: Callable[[str], None]


def run(installation: Installation, options: ServeOptions) -> int:
    """Serve until nothing is left to do, or somebody says so; the exit code."""
    settings = installation.settings()
    paths.made(installation.home)
    with logging_as_set(settings, options.tell):
        if options.is_stdio:
            asyncio.run(_stdio(installation))
            return 0
        place = ServeFolder(installation.home)
        with place.held():
            asyncio.run(_socket(installation, options, place))
    return 0


async def _stdio(installation: Installation) -> None:
    try:
        async with SessionServer(installation, stays=True) as server:
            await serve_stdio(server)
    finally:
        await shared.close()


async def _socket(installation: Installation, options: ServeOptions, place: ServeFolder) -> None:
    def ready() -> None:
        options.tell(f"Serving the sessions of {installation.home}; attach with: hermes attach --new")

    try:
        async with SessionServer(installation, stays=options.stays, idle_s=options.idle_s) as server:
            await serve_socket(server, place, ready)
    finally:
        await shared.close()
