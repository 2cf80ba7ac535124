"""Ports of two loopbacks: what the machine's own serves to the session, and what the session serves to the person."""

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import Callable

from hermes.tools.network.host_desk import HostDesk
from hermes.tools.network.listening_sockets import listening_here
from hermes.tools.network.relay import Relay, fit, refuse
from hermes.tools.network.space import ALWAYS_PORTS, PROXY_PORT, NetworkSpace

# What people run on their machine and develop against, by the words of a question.
SERVICES = {
    1433: "a database",
    3306: "a database",
    5432: "a database",
    5672: "a message queue",
    6379: "a database",
    8123: "a database",
    9092: "a message queue",
    9200: "a search engine",
    11211: "a cache",
    11434: "a model server",
    27017: "a database",
}
_LOOK_AGAIN_S = 0.5
_LOWEST = 1024
_MOST_SERVICES = 64
_MOST_OFFERED = 16
Spawn = Callable[..., None]
"""`spawn(function, *args)`: have an async function run, whose failure ends nothing else."""


class LocalPorts:
    """Lives on the loop of the session's network."""

    def __init__(self, space: NetworkSpace, desk: HostDesk, relay: Relay) -> None:
        self._space = space
        self._desk = desk
        self._relay = relay
        self.own: set[tuple[str, int]] = {("127.0.0.1", PROXY_PORT)}  # where we listen in the namespace
        self.offered: dict[int, str] = {}  # ports of the session's programs, and where the person finds each
        self._listeners: dict[int, socket.socket] = {}
        self._visitors: set[socket.socket] = set()
        self._taken: set[int] = set()
        self._seen: set[int] = set()
        self._watched = asyncio.Event()
        self.refill: Callable[[], None] = lambda: None  # called when a spare socket was used

    def services(self) -> list[int]:
        """The ports of the machine's loopback that a program of the session may ask for: what listens there now."""
        served = {port for port in served_here() if port >= _LOWEST} - self._listeners.keys() - {PROXY_PORT}
        first = sorted(served & SERVICES.keys()) + sorted(served - SERVICES.keys())
        named = self._desk.local_ports - {PROXY_PORT, *ALWAYS_PORTS}  # there we listen at every address
        return sorted({*named, *first[:_MOST_SERVICES]})

    def watch(self) -> None:
        """Look for listening programs from now on."""
        self._watched.set()

    async def serve(self, spawn: Spawn) -> None:
        """Offer what background processes listen on, and take it back when they end."""
        await self._watched.wait()
        while True:
            self._look(spawn)
            await asyncio.sleep(_LOOK_AGAIN_S)

    def close(self) -> None:
        for listener in self._listeners.values():
            listener.close()
        for visitor in self._visitors:
            visitor.close()
        self._listeners.clear()
        self.offered.clear()

    def _look(self, spawn: Spawn) -> None:
        now = {each.port: each.host for each in self._space.listening() if (each.host, each.port) not in self.own}
        now = {port: host for port, host in now.items() if port >= _LOWEST}
        for port in [port for port in self._listeners if port not in now]:
            asyncio.get_running_loop().remove_reader(self._listeners[port])
            self._listeners.pop(port).close()
            del self.offered[port]
        self._taken &= now.keys()
        for port in sorted(now.keys() & self._seen - self._listeners.keys() - self._taken):
            if len(self._listeners) < _MOST_OFFERED:
                self._offer(port, now[port], spawn)  # seen twice: what comes and goes at once is no server
        self._seen = set(now)

    def _offer(self, port: int, host: str, spawn: Spawn) -> None:
        if port in SERVICES:
            self._taken.add(port)
            self._desk.note(
                f"port {port} of a background process is not offered to the user: programs of theirs would take it for "
                f"{SERVICES[port]} of their own; another port is"
            )
            return
        listener = socket.socket()
        try:
            if port in served_here():  # also at another address: a browser that is told localhost may go to either
                raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))
            listener.listen(64)
        except OSError as error:
            listener.close()
            self._taken.add(port)
            self._desk.note(f"port {port} of a background process cannot be offered on this machine: {error.strerror}")
            return
        listener.setblocking(False)
        self._listeners[port] = listener
        self.offered[port] = f"http://127.0.0.1:{port}"
        self._desk.note(f"port {port} of a background process is open to the user at 127.0.0.1:{port}")
        asyncio.get_running_loop().add_reader(listener, self._accept, listener, host, spawn)

    def _accept(self, listener: socket.socket, host: str, spawn: Spawn) -> None:
        with contextlib.suppress(OSError):
            connection, _ = listener.accept()
            self._visitors.add(connection)
            spawn(self._enter, fit(connection), host, listener.getsockname()[1])

    async def _enter(self, connection: socket.socket, host: str, port: int) -> None:
        target = _target(host)
        inside = self._space.spare(is_v6=":" in target)
        self.refill()
        if inside is None:
            self._visitors.discard(connection)
            refuse(connection)
            return
        try:
            with contextlib.closing(connection), contextlib.closing(inside):
                await asyncio.get_running_loop().sock_connect(fit(inside), (target, port))
                await self._relay.carry(connection, inside)
        finally:
            self._visitors.discard(connection)


def _target(host: str) -> str:
    """Where a server is found that listens at `host`."""
    return "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104 - what it listens on


def served_here() -> set[int]:
    """The ports that somebody listens on at this machine's loopback."""
    return {each.port for each in listening_here() if each.host in ("127.0.0.1", "0.0.0.0", "::", "::1")}  # noqa: S104
