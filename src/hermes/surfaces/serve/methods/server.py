"""The server itself: who a client is, how the server stands, its end."""

import os

from msgspec import Struct, field

from hermes import __version__
from hermes.host.wire import frames
from hermes.host.wire.frames import PROTOCOL, WireError
from hermes.surfaces.serve.method import Method, MethodCall, NoParams
from hermes.types import JsonObject


class Hello(Struct, frozen=True, kw_only=True):
    """Who a client is: its version, and where and in what surroundings its sessions work."""

    version: str = __version__
    protocol: int = PROTOCOL
    name: str = ""
    cwd: str = ""
    environ: dict[str, str] = field(default_factory=dict)


class Resize(Struct, frozen=True):
    """The width of a screen."""

    cols: int = 80


async def hello(call: MethodCall, params: Hello) -> JsonObject:
    """Whoever is of another version is told which of the two to restart."""
    if (params.version, params.protocol) != (__version__, PROTOCOL):
        is_older = (params.protocol, _number(params.version)) < (PROTOCOL, _number(__version__))
        mend = "start this command again" if is_older else "restart the server: hermes serve --stop"
        raise WireError(
            frames.OTHER_VERSION, f"the server is Hermes {__version__}, this client is {params.version}; {mend}"
        )
    call.client.environ, call.client.cwd, call.client.name = params.environ, params.cwd, params.name
    return {"version": __version__, "protocol": PROTOCOL, "pid": os.getpid()}


async def status(call: MethodCall, _params: NoParams) -> JsonObject:
    return call.server.status()


async def stop(call: MethodCall, _params: NoParams) -> JsonObject:
    working = call.server.host.working
    call.server.ended.set()
    return {"status": "stopping", "working": working}


async def resize(_call: MethodCall, params: Resize) -> JsonObject:
    return {"cols": params.cols}


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


METHODS: dict[str, Method] = {
    "client.hello": Method(Hello, hello),
    "server.status": Method(NoParams, status),
    "server.stop": Method(NoParams, stop),
    "terminal.resize": Method(Resize, resize),
}
