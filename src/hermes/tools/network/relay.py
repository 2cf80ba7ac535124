"""Carry bytes between two connected sockets until both sides have had their say."""

import asyncio
import contextlib
import fcntl
import logging
import os
import select
import socket
import struct
import time

from hermes.tools.supervisor.threads import in_daemon_thread

log = logging.getLogger(__name__)
_CHUNK = 256 * 1024
_SMALL = 1 << 20
_PIPE = 1 << 20
_BUSY_S = 0.005
_GATHER_S = 0.0005
_AT_ONCE = struct.pack("ii", 1, 0)


async def relay(one: socket.socket, other: socket.socket) -> None:
    """Carry both ways; an end of one direction is passed on. Whatever breaks ends both; the caller closes them."""
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_carry(one, other))
            group.create_task(_carry(other, one))
    except* OSError as broken:
        log.debug("a connection broke: %s", broken.exceptions)


async def _carry(source: socket.socket, target: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    room, carried = memoryview(bytearray(_CHUNK)), 0
    while carried < _SMALL and (size := await loop.sock_recv_into(source, room)):
        await loop.sock_sendall(target, room[:size])
        carried += size
    if carried >= _SMALL:
        await _carry_large(source, target)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


async def _carry_large(source: socket.socket, target: socket.socket) -> None:
    """Carry on to the end in a thread: something large would keep this loop from everybody else."""
    ends = os.dup(source.fileno()), os.dup(target.fileno())  # the thread's own: ours may be closed before it ends
    try:
        await in_daemon_thread(_splice, *ends)
    except asyncio.CancelledError:
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)  # wakes the thread, which then finds an end
        raise


def _splice(source: int, target: int) -> None:
    """Move bytes from one socket to the other through a pipe, so that they never come into this process."""
    out_of, into = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    readable, writable = select.poll(), select.poll()
    readable.register(source, select.POLLIN)
    writable.register(target, select.POLLOUT)
    flags = os.SPLICE_F_NONBLOCK | os.SPLICE_F_MOVE
    came = 0.0
    try:
        with contextlib.suppress(OSError):  # the user's pipes are as large as they may be
            fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, _PIPE)
        while True:
            try:
                left = os.splice(source, into, _PIPE, flags=flags)
            except BlockingIOError:
                readable.poll()
                now = time.monotonic()
                if now - came < _BUSY_S:
                    # A stream, which comes in pieces of 16 KB: to wake for each costs as much as the rest of the way.
                    time.sleep(_GATHER_S)
                came = now
                continue
            if not left:
                return
            while left:
                try:
                    left -= os.splice(out_of, target, left, flags=flags)
                except BlockingIOError:
                    writable.poll()
    finally:
        for fd in (out_of, into, source, target):
            os.close(fd)


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
