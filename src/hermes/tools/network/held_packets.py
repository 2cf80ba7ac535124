"""Connections to any port of a made-up address: the first packet is held until somebody listens for it.

Nobody can listen on every port at once, and a listener stands in the way of a server of the session that wants the same
port on every address. So the packet that begins a connection goes nowhere at first, and we see it. Then we listen at
that address and port, let the connection's packets through and send the first one on; once the connection is there, the
listener goes. The program notices nothing but a millisecond.
"""

import contextlib
import errno
import logging
import socket
import struct
from collections.abc import Callable
from typing import NamedTuple

from hermes.tools.network.space import NetworkSpace

log = logging.getLogger(__name__)
_MOST_AT_ONCE = 64
_MOST_LED = 1000
_LARGEST = 2048
_SYN, _RST, _ACK = 0x02, 0x04, 0x10
LISTEN_S = 5.0  # for a connection whose program gave up meanwhile
LOOK_AFTER_S = (0.05, 0.5, 5.0)  # a connection has ended: when its last packets are through


class Begun(NamedTuple):
    """Which connection a packet begins."""

    address: str
    port: int
    from_port: int


class _Awaited(NamedTuple):
    listener: socket.socket
    begun: set[int]  # by the ports that they come from


class HeldPackets:
    """Lives on the loop of the session's network, which calls `look` when there is something to see."""

    def __init__(self, space: NetworkSpace, listen: Callable[[socket.socket], None], tell: Callable[[Begun], None]):
        self._space = space
        self._listen = listen  # have connections taken from this listener
        self._tell = tell  # a server of the session has that port
        self._awaited: dict[tuple[str, int], _Awaited] = {}
        self._led: set[Begun] = set()
        self._ended: set[Begun] = set()

    def look(self) -> list[Begun]:
        """Take up what was begun since the last time; the connections to be expected."""
        found = []
        for _ in range(_MOST_AT_ONCE):
            try:
                packet = self._space.wire.recv(_LARGEST)
            except BlockingIOError:
                break
            begun = read_begun(packet)
            if begun is not None and begun not in self._led and self._lead(begun, packet):
                found.append(begun)
        return found

    def taken(self, begun: Begun) -> socket.socket | None:
        """The connection is there, or will not come; the listener to be closed when nobody waits for it any more."""
        awaited = self._awaited.get((begun.address, begun.port))
        if awaited is None:
            return None
        awaited.begun.discard(begun.from_port)
        if awaited.begun:
            return None
        del self._awaited[begun.address, begun.port]
        return awaited.listener

    def ended(self, begun: Begun) -> bool:
        """The connection was closed; whether somebody has to `sweep` for it."""
        if begun in self._led:
            self._ended.add(begun)
        return bool(self._ended)

    def sweep(self) -> bool:
        """Forget closed connections whose last packets are through; whether some are left."""
        if self._ended:
            open_now = self._space.open_pairs()
            for begun in [each for each in self._ended if (each.from_port, each.port) not in open_now]:
                self._ended.discard(begun)
                self._led.discard(begun)
                self._space.routes.forget(*begun)
        return bool(self._ended)

    def _lead(self, begun: Begun, packet: bytes) -> bool:
        awaited = self._awaited.get((begun.address, begun.port))
        if awaited is None and len(self._led) < _MOST_LED:
            listener, why = self._space.listen(begun.address, begun.port)
            if listener is not None:
                awaited = self._awaited[begun.address, begun.port] = _Awaited(listener, set())
                self._listen(listener)
            elif why == errno.EADDRINUSE:
                self._tell(begun)
        if awaited is None:
            self._space.send(reset_of(packet))
            return False
        awaited.begun.add(begun.from_port)
        self._led.add(begun)
        self._space.routes.let_through(*begun)
        self._space.send(summed(packet))
        return True

    def close(self) -> None:
        for awaited in self._awaited.values():
            with contextlib.suppress(OSError):
                awaited.listener.close()
        self._awaited.clear()


def read_begun(packet: bytes) -> Begun | None:
    """The connection that an IPv4 packet begins; None for any other packet."""
    head = (packet[0] & 0xF) * 4 if packet else 0
    if head < 20 or len(packet) < head + 20 or packet[9] != socket.IPPROTO_TCP:
        return None
    from_port, port = struct.unpack_from("!HH", packet, head)
    if packet[head + 13] & (_SYN | _ACK) != _SYN:
        return None
    return Begun(socket.inet_ntoa(packet[16:20]), port, from_port)


def summed(packet: bytes) -> bytes:
    """The same packet with its own sum: over loopback the kernel leaves that out."""
    head = (packet[0] & 0xF) * 4
    segment = packet[head : head + 16] + b"\0\0" + packet[head + 18 :]
    pseudo = packet[12:20] + struct.pack("!HH", socket.IPPROTO_TCP, len(segment)) + segment
    words = struct.unpack(f"!{(len(pseudo) + 1) // 2}H", pseudo + bytes(len(pseudo) % 2))
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return packet[:head] + segment[:16] + struct.pack("!H", total ^ 0xFFFF) + segment[18:]


def reset_of(packet: bytes) -> bytes:
    """The answer of a machine on which nobody listens."""
    head = (packet[0] & 0xF) * 4
    from_port, port, number = struct.unpack_from("!HHI", packet, head)
    answer = struct.pack("!BBHHHBBH", 0x45, 0, 40, 0, 0, 64, socket.IPPROTO_TCP, 0) + packet[16:20] + packet[12:16]
    flags = _RST | _ACK
    answer += struct.pack("!HHIIBBHHH", port, from_port, 0, (number + 1) & 0xFFFFFFFF, 5 << 4, flags, 0, 0, 0)
    return summed(answer)
