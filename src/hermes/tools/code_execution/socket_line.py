"""Requests over a Unix stream socket: one JSON object per line in, one line out, a connection for each thread."""

import asyncio
import contextlib
import os
import socket

from hermes.tools.code_execution.desk import MAX_REQUEST_BYTES, Desk, too_large

MAX_CONNECTIONS = 256
_READ_BYTES = 1 << 18


def listen(path: str) -> socket.socket:
    """A listening socket that only its owner can reach."""
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        line.bind(path)
        os.chmod(path, 0o600)  # noqa: PTH101 - one call, on the way of every script
        line.listen(64)
        line.setblocking(False)
    except BaseException:
        line.close()
        raise
    return line


async def serve(listener: socket.socket, desk: Desk) -> None:
    """Answer until cancelled. Whatever one connection does costs at most that connection."""
    loop = asyncio.get_running_loop()
    open_now: set[socket.socket] = set()
    async with asyncio.TaskGroup() as group:
        while True:
            line, _ = await loop.sock_accept(listener)
            if len(open_now) >= MAX_CONNECTIONS:
                line.close()
                continue
            line.setblocking(False)
            open_now.add(line)
            group.create_task(_served(line, desk, open_now))


async def _served(line: socket.socket, desk: Desk, open_now: set[socket.socket]) -> None:
    try:
        with contextlib.suppress(ConnectionError, BrokenPipeError):  # the script's end is the script's business
            await _converse(line, desk)
    finally:
        open_now.discard(line)
        line.close()


async def _converse(line: socket.socket, desk: Desk) -> None:
    loop = asyncio.get_running_loop()
    held = bytearray()
    while True:
        data = await loop.sock_recv(line, _READ_BYTES)
        if not data:
            return
        searched = len(held)
        held += data
        while (end := held.find(b"\n", searched)) >= 0:
            request = bytes(held[:end])
            del held[: end + 1]
            searched = 0
            await loop.sock_sendall(line, await desk.answer(request) + b"\n")
        if len(held) > MAX_REQUEST_BYTES:
            await loop.sock_sendall(line, too_large() + b"\n")
            return
