"""The routes of a session's namespace, over a netlink socket in it: which packets stay there, to come to us.

A made-up address, and one that the settings grant, is nobody's own in the namespace, though packets to it come in again
over loopback: a listener of ours that may take them does, and where nobody listens the kernel has no address to refuse
from, so that it says nothing and the packet is as good as held (see `held_packets`).
"""

import os
import socket
import struct

from hermes.tools.network.made_up_names import RANGE

_LINK_CHANGE, _ROUTE_ADD, _RULE_ADD = 16, 24, 32
_REQUEST_ACK_CREATE = 0x1 | 0x4 | 0x400
_MAIN, _STATIC, _SCOPE_LINK, _UNICAST, _UNREACHABLE = 254, 4, 253, 1, 7
_DESTINATION, _OUT_OVER, _PREFERRED_SOURCE = 1, 4, 7
_RULE_PRIORITY, _RULE_PROTOCOL = 6, 22
_LARGEST_V4, _LARGEST_BYTES = 63, 512 * 1024 - 8  # of what is sent at once; since Linux 6.3
_LOOPBACK = 1  # the number of the interface in every namespace
_FILE_EXISTS = 17


class Routes:
    """Kernel routes and rules of one namespace. Whoever made the socket closes it."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line

    def refuse_datagrams(self) -> None:
        """Have those to made-up addresses fail at once, so that a program that can goes on over TCP."""
        self._refuse(_attribute(_RULE_PROTOCOL, bytes([socket.IPPROTO_UDP])))

    def refuse_all(self) -> None:
        """Nobody serves the namespace any more: what still runs there is not to wait for an answer."""
        self._refuse(b"")

    def _refuse(self, which: bytes) -> None:
        rule = struct.pack("=BBBBBBBBI", socket.AF_INET, RANGE.prefixlen, 0, 0, 0, 0, 0, _UNREACHABLE, 0)
        rule += _attribute(_RULE_PRIORITY, struct.pack("=I", 1)) + which
        self._ask(_RULE_ADD, rule + _attribute(_DESTINATION, RANGE.network_address.packed))

    def lead_here(self, address: str, bits: int = 32) -> None:
        """From now on packets to this address, or network, stay in the namespace; until then it has no route."""
        route = struct.pack("=BBBBBBBBI", socket.AF_INET, bits, 0, 0, _MAIN, _STATIC, _SCOPE_LINK, _UNICAST, 0)
        route += _attribute(_DESTINATION, socket.inet_aton(address))
        route += _attribute(_OUT_OVER, struct.pack("=I", _LOOPBACK))
        self._ask(_ROUTE_ADD, route + _attribute(_PREFERRED_SOURCE, socket.inet_aton("127.0.0.1")))

    def allow_large_packets(self) -> None:
        """Let what passes between a program and us be as few pieces as the kernel makes; an older one refuses."""
        link = struct.pack("=BBHiII", socket.AF_UNSPEC, 0, 0, _LOOPBACK, 0, 0)
        self._ask(_LINK_CHANGE, link + _attribute(_LARGEST_V4, struct.pack("=I", _LARGEST_BYTES)))

    def _ask(self, kind: int, body: bytes) -> None:
        self._line.send(struct.pack("=IHHII", 16 + len(body), kind, _REQUEST_ACK_CREATE, 1, 0) + body)
        (code,) = struct.unpack_from("=i", self._line.recv(4096), 16)
        if code not in (0, -_FILE_EXISTS):
            raise OSError(-code, f"the routes of the session's network: {os.strerror(-code)}")


def _attribute(kind: int, value: bytes) -> bytes:
    size = 4 + len(value)
    return struct.pack("=HH", size, kind) + value + bytes(-size % 4)
