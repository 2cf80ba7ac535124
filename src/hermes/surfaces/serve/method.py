"""Methods of the protocol: a table of names, typed parameters and what answers them."""

from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from hermes.errors import HermesError
from hermes.host.host_errors import ErrorKind, kind_of_error
from hermes.host.wire import frames
from hermes.host.wire.frames import WireError
from hermes.tables import Table

if TYPE_CHECKING:
    from hermes.host.live_session import LiveSession
    from hermes.surfaces.serve.client import Client
    from hermes.surfaces.serve.server import SessionServer

CODES: dict[ErrorKind, int] = {
    "not_found": frames.NO_STORED_SESSION,
    "busy": frames.BUSY,
    "invalid": frames.BAD_VALUE,
    "refused": frames.REFUSED,
    "nothing_pending": frames.BUSY,
    "failed": frames.FAILED,
}


class NoParams(Struct, frozen=True):
    """Nothing is asked but the name."""


class OfSession(Struct, frozen=True, kw_only=True):
    """What is about a live session."""

    session_id: str = ""


class MethodCall(Struct, frozen=True):
    """Who asks, and where."""

    client: "Client"

    @property
    def server(self) -> "SessionServer":
        return self.client.server

    async def live(self, session_id: str, *, to_change: bool = True) -> "LiveSession":
        """The live session of an id, awake; 4001 when there is none. One that is only watched is not changed."""
        found = await self.server.book.live(session_id)
        if to_change and self.client.is_read_only(session_id):
            raise WireError(frames.REFUSED, "this session is attached read-only")
        return found


class Method(Struct, frozen=True):
    """What a name does: how its parameters look, and who answers. `is_ordered`: one after the other per client."""

    params: type[Struct]
    run: Callable[[MethodCall, Any], Awaitable[Any]]
    is_ordered: bool = False


_FILES: Table[Mapping[str, Method]] = Table("hermes.surfaces.serve.methods", "METHODS")


@cache
def methods() -> dict[str, Method]:
    """All of them, by name."""
    return {name: method for file in _FILES.names() for name, method in _FILES.load(file).items()}


def wire_error(error: HermesError) -> WireError:
    """What a host refuses, as an error of the protocol."""
    return WireError(CODES[kind_of_error(error)], str(error))
