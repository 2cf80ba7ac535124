"""Carry bytes between two connected sockets until both sides have had their say."""

import asyncio
import contextlib
import fcntl
import logging
import os
import socket
import struct

log = logging.getLogger(__name__)
_CHUNK = 256 * 1024
_SMALL = 1 << 20
_PIPE = 1 << 20
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
        await _splice(source, target)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


async def _splice(source: socket.socket, target: socket.socket) -> None:
    """Carry on to the end through a pipe: the bytes of something large never come into this process."""
    out_of, into = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # the user's pipes are as large as they may be
            fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, _PIPE)
        while True:
            try:
                left = os.splice(source.fileno(), into, _PIPE, flags=os.SPLICE_F_NONBLOCK | os.SPLICE_F_MOVE)
            except BlockingIOError:
                await _ready(source, is_to_write=False)
                continue
            if not left:
                return
            while left:
                try:
                    left -= os.splice(out_of, target.fileno(), left, flags=os.SPLICE_F_NONBLOCK | os.SPLICE_F_MOVE)
                except BlockingIOError:
                    await _ready(target, is_to_write=True)
    finally:
        os.close(out_of)
        os.close(into)


async def _ready(connection: socket.socket, *, is_to_write: bool) -> None:
    loop = asyncio.get_running_loop()
    add, remove = (loop.add_writer, loop.remove_writer) if is_to_write else (loop.add_reader, loop.remove_reader)
    waiting: asyncio.Future[None] = loop.create_future()
    add(connection, lambda: None if waiting.done() else waiting.set_result(None))
    try:
        await waiting
    finally:
        remove(connection)


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
