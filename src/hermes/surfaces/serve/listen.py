"""The two ways in: the socket of a home, and stdin and stdout."""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from hermes import __version__
from hermes.host.wire import frames
from hermes.host.wire.frames import MOST_LINE_BYTES, WireError, WireEvent, encode_error, encode_event
from hermes.host.wire.serve_folder import ServeFolder, ServerNote
from hermes.surfaces.serve.client import Client
from hermes.surfaces.serve.peer import refusal

if TYPE_CHECKING:
    import socket

    from hermes.surfaces.serve.server import SessionServer

MOST_CLIENTS = 256
SETTLE_S = 2.0  # for the last words to a client that goes
SKIN = {"name": "default", "colors": {}, "branding": {"agent_name": "Hermes"}}


async def serve_socket(server: "SessionServer", place: ServeFolder, on_ready: Callable[[], None]) -> None:
    """Serve clients of the socket until the server has ended. `place` is held by the caller."""
    bound = place.bound()
    place.write_note(ServerNote(os.getpid(), __version__, time.time()))
    ways: set[asyncio.StreamWriter] = set()

    async def come(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ways.add(writer)
        try:
            await _served(server, reader, writer)
        finally:
            ways.discard(writer)
            writer.close()

    listening = await asyncio.start_unix_server(come, sock=bound, limit=MOST_LINE_BYTES)
    on_ready()
    try:
        with _signals(server.ended.set):
            await server.ended.wait()
    finally:
        listening.close()
        for writer in list(ways):
            writer.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SETTLE_S):
                await listening.wait_closed()


async def serve_stdio(server: "SessionServer") -> None:
    """Serve one client on stdin and stdout, to the end of stdin."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=MOST_LINE_BYTES)
    out = _own_stdout()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(os.dup(0), "rb", buffering=0))

    async def send(line: bytes) -> None:
        await server.in_thread(_write_all, out, line)

    with _signals(server.ended.set):
        async with Client(server, send) as client:
            await client.tell("gateway.ready", "", _ready())
            await _heard(server, client, reader)
            await client.settle(SETTLE_S)
    server.ended.set()


async def _served(server: "SessionServer", reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    peer: socket.socket = writer.get_extra_info("socket")
    why = refusal(peer)
    if not why and len(server.clients) >= MOST_CLIENTS:
        why = f"{MOST_CLIENTS} clients are connected already"

    async def send(line: bytes) -> None:
        writer.write(line)
        await writer.drain()

    with contextlib.suppress(ConnectionError):
        if why:
            await send(encode_error(None, WireError(frames.REFUSED, why)))
            return
        async with Client(server, send) as client:
            await send(encode_event(WireEvent("gateway.ready", "", _ready())))
            await _heard(server, client, reader)


async def _heard(server: "SessionServer", client: Client, reader: asyncio.StreamReader) -> None:
    """Hand lines to the client until there are no more, or it or the server is gone."""
    async with asyncio.TaskGroup() as group:
        ends = [group.create_task(one.wait()) for one in (client.is_gone, server.ended)]
        reading = group.create_task(_read(client, reader))
        try:
            await asyncio.wait([*ends, reading], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*ends, reading):
                task.cancel()


async def _read(client: Client, reader: asyncio.StreamReader) -> None:
    while True:
        try:
            line = await reader.readline()
        except ConnectionError:
            return
        except ValueError:  # no end of the line within the limit
            words = f"a line may have {MOST_LINE_BYTES} bytes; this connection is closed"
            with contextlib.suppress(ConnectionError):
                await client.refuse(WireError(frames.NOT_A_REQUEST, words))
            return
        if not line.endswith(b"\n"):
            return  # the end, or half a line before it
        await client.hear(line)


def _ready() -> dict[str, object]:
    return {"skin": SKIN, "version": __version__, "protocol": frames.PROTOCOL}


def _own_stdout() -> int:
    """A descriptor of stdout that only we write to; whatever else prints goes to stderr from now on."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    return kept


def _write_all(fd: int, line: bytes) -> None:
    view = memoryview(line)
    while view:
        view = view[os.write(fd, view) :]


@contextlib.contextmanager
def _signals(stop: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
