"""The routes of a session's namespace, over a netlink socket in it: which packets to made-up addresses lead to us.

A made-up address has two routes. By the main table a packet to it goes out over loopback and is dropped where it comes
in again, unanswered; by a table of ours it is delivered. Rules say when ours holds: for the ports that we always listen
on, and for one connection after another on any other port, once somebody listens for it (see `held_packets`).
"""

import os
import socket
import struct

from hermes.tools.network.made_up_names import RANGE

MARK = 1  # of packets that we send on ourselves
_ROUTE_ADD, _RULE_ADD, _RULE_DELETE = 24, 32, 33
_REQUEST_ACK, _CREATE = 0x1 | 0x4, 0x400
_MAIN, _OURS = 254, 77
_STATIC = 4
_SCOPE_LINK, _SCOPE_HOST = 253, 254
_UNICAST, _LOCAL = 1, 2
_DESTINATION, _OUT_OVER, _PREFERRED_SOURCE = 1, 4, 7
_RULE_PRIORITY, _RULE_MARK, _RULE_PROTOCOL, _RULE_FROM_PORT, _RULE_TO_PORT = 6, 10, 22, 23, 24
_TO_TABLE, _UNREACHABLE = 1, 7
_LOOPBACK = 1  # the number of the interface in every namespace
_HERE = socket.inet_aton("127.0.0.1")
_HARMLESS = (17, 2)  # it was there already, or is gone already


class Routes:
    """Kernel routes and rules of one namespace. Whoever made the socket closes it."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line

    def prepare(self, always: tuple[int, ...]) -> None:
        """The rules that hold for all names: `always` are the TCP ports on which somebody listens at every address."""
        self._rule(1, _attribute(_RULE_MARK, struct.pack("=I", MARK)))
        for port in always:
            self._rule(2, _ports(_RULE_TO_PORT, port) + _protocol(socket.IPPROTO_TCP), RANGE.network_address.packed)
        # A datagram fails at once, so that a program that can goes on over TCP.
        self._rule(3, _protocol(socket.IPPROTO_UDP), RANGE.network_address.packed, action=_UNREACHABLE)

    def lead_here(self, address: str) -> None:
        """From now on packets to this made-up address stay in the namespace; until then it has no route."""
        for table, kind, scope in ((_OURS, _LOCAL, _SCOPE_HOST), (_MAIN, _UNICAST, _SCOPE_LINK)):
            route = struct.pack("=BBBBBBBBI", socket.AF_INET, 32, 0, 0, table, _STATIC, scope, kind, 0)
            route += _attribute(_DESTINATION, socket.inet_aton(address))
            route += _attribute(_OUT_OVER, struct.pack("=I", _LOOPBACK)) + _attribute(_PREFERRED_SOURCE, _HERE)
            self._ask(_ROUTE_ADD, route)

    def let_through(self, address: str, port: int, from_port: int) -> None:
        """Deliver the packets of one connection."""
        self._rule(10, _connection(port, from_port), socket.inet_aton(address), bits=32)

    def forget(self, address: str, port: int, from_port: int) -> None:
        """Deliver them no more."""
        self._rule(10, _connection(port, from_port), socket.inet_aton(address), bits=32, kind=_RULE_DELETE)

    def _rule(
        self,
        order: int,
        more: bytes,
        to: bytes = b"",
        *,
        bits: int = RANGE.prefixlen,
        action: int = _TO_TABLE,
        kind: int = _RULE_ADD,
    ) -> None:
        table = _OURS if action == _TO_TABLE else 0
        rule = struct.pack("=BBBBBBBBI", socket.AF_INET, bits if to else 0, 0, 0, table, 0, 0, action, 0)
        rule += _attribute(_RULE_PRIORITY, struct.pack("=I", order)) + more
        self._ask(kind, rule + (_attribute(_DESTINATION, to) if to else b""))

    def _ask(self, kind: int, body: bytes) -> None:
        flags = _REQUEST_ACK if kind == _RULE_DELETE else _REQUEST_ACK | _CREATE
        self._line.send(struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0) + body)
        (code,) = struct.unpack_from("=i", self._line.recv(4096), 16)
        if code and -code not in _HARMLESS:
            raise OSError(-code, f"the routes of the session's network: {os.strerror(-code)}")


def _connection(port: int, from_port: int) -> bytes:
    return _protocol(socket.IPPROTO_TCP) + _ports(_RULE_FROM_PORT, from_port) + _ports(_RULE_TO_PORT, port)


def _protocol(number: int) -> bytes:
    return _attribute(_RULE_PROTOCOL, bytes([number]))


def _ports(kind: int, port: int) -> bytes:
    return _attribute(kind, struct.pack("=HH", port, port))


def _attribute(kind: int, value: bytes) -> bytes:
    size = 4 + len(value)
    return struct.pack("=HH", size, kind) + value + bytes(-size % 4)
