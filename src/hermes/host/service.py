"""What runs beside the sessions for as long as a server does: one file of `host/services` each.

A server starts those that its settings want, and cancels them when it ends. A service that fails is logged and is not
started again; it costs the server nothing else.
"""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from hermes.config.settings import Settings
from hermes.tables import Table

if TYPE_CHECKING:
    from hermes.host.host import Host
    from hermes.host.hosted_session import SessionStart


class ServiceContext(Struct, frozen=True):
    """What a service works with. `start()` is what new sessions of the server are opened with."""

    host: "Host"
    settings: Settings
    start: "Callable[[], SessionStart]"


class HostService(Struct, frozen=True, kw_only=True):
    """A service. `run` goes on until it is cancelled; `keeps_server` says whether the server must not end by itself."""

    run: Callable[[ServiceContext], Coroutine[Any, Any, None]]
    is_wanted: Callable[[Settings], bool] = lambda _settings: True
    keeps_server: Callable[[Settings], bool] = lambda _settings: False


SERVICES: Table[HostService] = Table("hermes.host.services", "SERVICE")
