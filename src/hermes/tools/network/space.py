"""A session's network namespace as the runtime holds it: descriptors and sockets of it, and nothing that runs there."""

import contextlib
import errno
import json
import logging
import os
import socket
import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from hermes.errors import ToolError
from hermes.tools.network.routes import Routes

log = logging.getLogger(__name__)

DNS_PLACES = ("127.0.0.1", "127.0.0.53")
PROXY_PORT = 1080
# Listened on at every address from the start. No program of a session can listen below 1024, so these are in nobody's
# way; for any other port see `held_packets`.
ALWAYS_PORTS = (22, 80, 443)
# What the wire does not show of first packets: those within loopback, and those to the ports above.
WATCH = {"not_watched": [0x7F000000, 0xFF000000, *ALWAYS_PORTS]}
_SPARE = 64
FEW_LEFT = 24
_SPARE_V6 = 8
FEW_V6_LEFT = 2
_ANSWER_LIMIT_S = 10.0
_LISTENS = "0A"


@runtime_checkable
class MakesNetworks(Protocol):
    """A supervisor whose keeper makes network namespaces and sockets in them."""

    async def network(self, wanted: dict[str, object], namespaces: Sequence[int] = ()) -> socket.socket: ...


class Listening(NamedTuple):
    """Where a program waits for connections."""

    host: str
    port: int
    inode: int


class NetworkSpace:
    """What was made in the namespace. Whoever asked for it closes it."""

    def __init__(self, made: list[tuple[str, int]]) -> None:
        found = dict(made)
        self.namespaces = tuple(found[name] for name in ("user", "net") if name in found)
        self._tables = [found[name] for name in ("tcp", "tcp6") if name in found]
        self._netlink = socket.socket(fileno=found["netlink"])
        self.wire = socket.socket(fileno=found["wire"])  # sees the packets that begin connections
        self._raw = socket.socket(fileno=found["raw"])
        self.routes = Routes(self._netlink)
        self.bound = {word: socket.socket(fileno=fd) for word, fd in made if " " in word}
        self._spare: list[socket.socket] = []
        self._spare_v6: list[socket.socket] = []
        self.take_in(made)

    @property
    def few_left(self) -> bool:
        """Whether more sockets should be made."""
        return len(self._spare) < FEW_LEFT or len(self._spare_v6) < FEW_V6_LEFT

    def take_in(self, made: Iterable[tuple[str, int]]) -> None:
        """Keep further spare sockets."""
        for word, fd in made:
            if word in ("spare", "spare6"):
                (self._spare if word == "spare" else self._spare_v6).append(socket.socket(fileno=fd))

    def spare(self, *, is_v6: bool = False) -> socket.socket | None:
        """A socket in the namespace that is neither bound nor connected; the caller closes it."""
        kept = self._spare_v6 if is_v6 else self._spare
        return kept.pop() if kept else None

    def listen(self, host: str, port: int) -> tuple[socket.socket | None, int]:
        """A socket that listens there, or why there is none: a number of `errno`."""
        made = self.spare()
        if made is None:
            return None, errno.EAGAIN
        try:
            # What was taken from it keeps nobody from listening there later.
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind((host, port))
            made.listen(64)
        except OSError as error:
            made.close()
            return None, error.errno or errno.EIO
        made.setblocking(False)
        return made, 0

    def send(self, packet: bytes) -> None:
        """Have a packet delivered in the namespace."""
        try:
            self._raw.sendto(packet, (socket.inet_ntoa(packet[16:20]), 0))
        except OSError as error:  # its program asks again in a second
            log.debug("a packet was not sent on: %s", error)

    def listening(self) -> list[Listening]:
        """Who listens in the namespace, ourselves among them."""
        return [each for fd in self._tables for each in listening_in(_whole(fd))]

    def inode_of(self, start: tuple[str, int], end: tuple[str, int]) -> int:
        """The socket of the program that connects from `start` to `end`; 0 when it is gone."""
        for fd in self._tables:
            for row in _rows(_whole(fd)):
                # By both ends: several may connect from one port, each to somebody else.
                if _port_of(row[1]) == start[1] and int(row[9]) and (_place(row[1]), _place(row[2])) == (start, end):
                    return int(row[9])
        return 0

    def close(self) -> None:
        for each in (*self.bound.values(), *self._spare, *self._spare_v6, self._netlink, self.wire, self._raw):
            each.close()
        self._spare.clear()
        self._spare_v6.clear()
        for fd in (*self._tables, *self.namespaces):
            os.close(fd)
        self._tables, self.namespaces = [], ()


async def make_space(supervisor: MakesNetworks) -> NetworkSpace:
    """A new namespace with the sockets that every session needs; `ToolError` where none can be had."""
    bound = [f"udp {host} 53" for host in DNS_PLACES] + ["tcp 0.0.0.0 53", f"tcp 127.0.0.1 {PROXY_PORT}"]
    bound += [f"tcp 0.0.0.0 {port}" for port in ALWAYS_PORTS]
    made = await _asked(supervisor, {"bound": bound, "spare": _SPARE, "spare6": _SPARE_V6, **WATCH})
    space = NetworkSpace(made)
    try:
        space.routes.refuse_datagrams()
        space.wire.setblocking(False)
        with contextlib.suppress(OSError):
            space.routes.allow_large_packets()
    except OSError as error:
        space.close()
        raise ToolError(f"the session's network could not be made: {error.strerror}") from error
    return space


async def more_sockets(supervisor: MakesNetworks, space: NetworkSpace) -> None:
    """Have further spare sockets made."""
    space.take_in(await _asked(supervisor, {"bound": [], "spare": _SPARE, "spare6": _SPARE_V6}, space.namespaces))


async def _asked(
    supervisor: MakesNetworks, wanted: dict[str, object], namespaces: Sequence[int] = ()
) -> list[tuple[str, int]]:
    import asyncio  # the tables above are read without

    line = await supervisor.network(wanted, namespaces)
    made: list[tuple[str, int]] = []
    loop = asyncio.get_running_loop()
    line.setblocking(False)
    try:
        async with asyncio.timeout(_ANSWER_LIMIT_S):
            while True:
                readable = loop.create_future()
                loop.add_reader(line, _settle, readable)
                try:
                    await readable
                finally:
                    loop.remove_reader(line)
                text, fds, _, _ = socket.recv_fds(line, 65536, 256, socket.MSG_CMSG_CLOEXEC)
                told = json.loads(text) if text else {"error": "the keeper is gone"}
                if "error" in told:
                    raise ToolError(f"the session's network could not be made: {told['error']}")
                if "over" in told:
                    return made
                made += zip(told["made"], fds, strict=True)
    except BaseException:
        for _, fd in made:
            os.close(fd)
        raise
    finally:
        line.close()


def listening_in(table: str) -> list[Listening]:
    """The listening sockets in the text of /proc/net/tcp or tcp6."""
    found = []
    for row in _rows(table):
        if row[3] == _LISTENS:
            host, _, port = row[1].rpartition(":")
            found.append(Listening(_address(host), int(port, 16), int(row[9])))
    return found


def _port_of(place: str) -> int:
    return int(place.rpartition(":")[2], 16)


def _place(text: str) -> tuple[str, int]:
    return _address(text.rpartition(":")[0]).removeprefix("::ffff:"), _port_of(text)


def _rows(table: str) -> list[list[str]]:
    return [row for line in table.splitlines()[1:] if len(row := line.split()) > 9]


def _address(text: str) -> str:
    """The kernel writes addresses as words in the processor's own order."""
    words = b"".join(struct.pack("=I", int(text[place : place + 8], 16)) for place in range(0, len(text), 8))
    return socket.inet_ntop(socket.AF_INET if len(words) == 4 else socket.AF_INET6, words)


def _whole(fd: int) -> str:
    os.lseek(fd, 0, os.SEEK_SET)
    parts = []
    while part := os.read(fd, 65536):
        parts.append(part)
    return b"".join(parts).decode("ascii", "replace")


def _settle(future: "asyncio.Future[None]") -> None:  # type: ignore[name-defined]  # noqa: F821
    if not future.done():
        future.set_result(None)
