"""Connections to any port of a made-up address: the first packet is held until somebody listens for it.

Nobody can listen on every port at once, and a listener stands in the way of a server of the session that wants the same
port on every address. So the packet that begins a connection meets nobody at first, and we see it. Then we listen at
that address and port and send the packet on, and once no more connections come the listener goes. The program notices
nothing but a millisecond.
"""

import errno
import socket
import struct
import time
from collections.abc import Callable
from typing import NamedTuple

from hermes.tools.network.space import NetworkSpace

_MOST_AT_ONCE = 256
_MOST_LISTENERS = 256
_MOST_SENT = 4096
_LARGEST = 2048
_SYN, _RST, _ACK = 0x02, 0x04, 0x10
# A listener that is closed refuses whoever came in that very moment, so it is closed when nobody has come for a while.
IDLE_S = 0.02


class Begun(NamedTuple):
    """Which connection a packet begins."""

    address: str
    port: int
    from_port: int


class _Awaited:
    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener
        self.used_at = time.monotonic()


class HeldPackets:
    """Lives on the loop of the session's network, which calls `look` when there is something to see."""

    def __init__(self, space: NetworkSpace, listen: Callable[[socket.socket], None], tell: Callable[[Begun], None]):
        self._space = space
        self._listen = listen  # have connections taken from this listener
        self._tell = tell  # a server of the session has that port
        self._awaited: dict[tuple[str, int], _Awaited] = {}
        self._sent: set[Begun] = set()  # what we sent on, which we see as well

    def look(self) -> None:
        """Listen for what was begun since the last time."""
        for _ in range(_MOST_AT_ONCE):
            try:
                packet = self._space.wire.recv(_LARGEST)
            except BlockingIOError:
                return
            begun = read_begun(packet)
            if begun in self._sent:
                self._sent.discard(begun)
            elif begun is not None:
                self._lead(begun, packet)

    def idle(self) -> list[socket.socket]:
        """The listeners that nobody came to lately: whoever asks closes them."""
        self.look()  # what is on its way to a listener was on the wire before
        until = time.monotonic() - IDLE_S
        gone = {place: each.listener for place, each in self._awaited.items() if each.used_at < until}
        for place in gone:
            del self._awaited[place]
        return list(gone.values())

    def used(self, address: str, port: int) -> None:
        """Somebody came."""
        awaited = self._awaited.get((address, port))
        if awaited is not None:
            awaited.used_at = time.monotonic()

    @property
    def is_listening(self) -> bool:
        return bool(self._awaited)

    def close(self) -> None:
        for awaited in self._awaited.values():
            awaited.listener.close()
        self._awaited.clear()

    def _lead(self, begun: Begun, packet: bytes) -> None:
        awaited = self._awaited.get((begun.address, begun.port))
        if awaited is None and len(self._awaited) < _MOST_LISTENERS:
            listener, why = self._space.listen(begun.address, begun.port)
            if listener is not None:
                awaited = self._awaited[begun.address, begun.port] = _Awaited(listener)
                self._listen(listener)
            elif why == errno.EAGAIN:
                return  # more sockets are on their way, and its program asks again in a second
            elif why == errno.EADDRINUSE:
                self._tell(begun)
        if awaited is None:
            self._space.send(reset_of(packet))
            return
        awaited.used_at = time.monotonic()
        if len(self._sent) >= _MOST_SENT:  # some were not seen again
            self._sent.clear()
        # It may have found the listener by itself just now; then the kernel knows the connection, and drops this.
        self._sent.add(begun)
        self._space.send(summed(packet))


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
