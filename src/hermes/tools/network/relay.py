"""Carry bytes between two connected sockets until both sides have had their say."""

import asyncio
import contextlib
import logging
import socket
import struct

log = logging.getLogger(__name__)
_CHUNK = 256 * 1024
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
    room = memoryview(bytearray(_CHUNK))
    while size := await loop.sock_recv_into(source, room):
        await loop.sock_sendall(target, room[:size])
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


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
