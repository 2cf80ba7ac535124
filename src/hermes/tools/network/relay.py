"""Carry bytes between two connected sockets until both sides have had their say."""

import asyncio
import contextlib
import logging
import select
import socket
import struct
import time

from hermes.tools.supervisor.threads import in_daemon_thread

log = logging.getLogger(__name__)
_CHUNK = 64 * 1024
_LARGE_CHUNK = 1 << 20
_SMALL = 1 << 20
_MOST_LARGE = 32  # directions with a thread and a large chunk of their own; it bounds what programs can make us hold
_STREAM = 16 * 1024
_GATHER_S = 0.0001
_AT_ONCE = struct.pack("ii", 1, 0)


class Relay:
    """Carries for one session; of its transfers so many may be large at once, the others stay on the loop."""

    def __init__(self) -> None:
        self._large = 0

    async def carry(self, one: socket.socket, other: socket.socket) -> None:
        """Carry both ways; an end of one direction is passed on. Whatever breaks ends both; the caller closes them."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._carry_one_way(one, other))
                group.create_task(self._carry_one_way(other, one))
        except* OSError as broken:
            log.debug("a connection broke: %s", broken.exceptions)

    async def _carry_one_way(self, source: socket.socket, target: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        room, carried = memoryview(bytearray(_CHUNK)), 0
        while size := await loop.sock_recv_into(source, room):
            await loop.sock_sendall(target, room[:size])
            carried += size
            if carried >= _SMALL and self._large < _MOST_LARGE:
                await self._carry_rest(source, target)
                break
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    async def _carry_rest(self, source: socket.socket, target: socket.socket) -> None:
        """Carry on to the end in a thread: something large would keep this loop from everybody else."""
        ends = source.dup(), target.dup()  # the thread's own: ours may be closed before it ends
        self._large += 1
        try:
            await in_daemon_thread(_copy, *ends)
        except asyncio.CancelledError:
            for each in (source, target):
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)  # wakes the thread, which then finds an end
            raise
        finally:
            self._large -= 1


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Write on what comes, in pieces as large as can be had; closes both.

    To splice the pages from socket to socket would be dearer: the kernel makes few large packets of what is written at
    once, but sends spliced pages on in the small pieces that they came in.
    """
    readable, writable = select.poll(), select.poll()
    readable.register(source, select.POLLIN)
    writable.register(target, select.POLLOUT)
    room, size = memoryview(bytearray(_LARGE_CHUNK)), 0
    with source, target:
        while True:
            try:
                came = source.recv_into(room)
            except BlockingIOError:
                readable.poll()
                if size >= _STREAM:
                    # More is on its way, in pieces of 16 KB: to wake for each costs as much as the rest of the way.
                    time.sleep(_GATHER_S)
                size = 0
                continue
            size += came
            if not came:
                return
            sent = 0
            while sent < came:
                try:
                    sent += target.send(room[sent:came])
                except BlockingIOError:
                    writable.poll()


def refuse(connection: socket.socket) -> None:
    """Close with a reset, so that the program sees a failure and not an empty answer."""
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
    connection.close()


def fit(connection: socket.socket) -> socket.socket:
    """Ready for a loop, and for small messages that are answered one by one."""
    connection.setblocking(False)
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection
