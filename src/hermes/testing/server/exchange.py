"""One HTTP/1.1 exchange of the scripted server: the request that came, and the ways to answer or to fail."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

MAX_HEAD_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A request as it arrived: `headers` by lower-case name, `raw` byte for byte, `json` decoded or None."""

    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes
    json: Any = field(repr=False)


class Exchange:
    """Writes the answer to one request. A fault may use it in any way, sensible or not."""

    def __init__(self, request: RecordedRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.request = request
        self._reader = reader
        self._writer = writer
        self.keeps_connection = True

    async def respond(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """A whole answer at once."""
        fields = {"content-type": "application/json", **(headers or {}), "content-length": str(len(body))}
        self._writer.write(_head(status, fields) + body)
        await self._writer.drain()

    def start(self, content_type: str) -> None:
        """The head of a streamed 200."""
        fields = {"content-type": content_type, "cache-control": "no-cache", "transfer-encoding": "chunked"}
        self._writer.write(_head(200, fields))

    async def write_as_is(self, status: int, fields: Mapping[str, str], *pieces: bytes) -> None:
        """A head with these fields and no others, and pieces of a body: the one need not fit the other."""
        self.keeps_connection = False
        self._writer.write(_head(status, fields))
        for piece in pieces:
            self._writer.write(piece)
            await self._writer.drain()

    async def send(self, *pieces: bytes) -> None:
        """Pieces of a stream, each as one chunk of the transfer."""
        self._writer.write(b"".join([b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces if piece]))
        await self._writer.drain()

    async def finish(self) -> None:
        """The end of a stream, as it should be."""
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    async def cut(self) -> None:
        """Close the connection in the middle of the answer, in the orderly way."""
        await self._writer.drain()
        self.keeps_connection = False

    def reset(self) -> None:
        """Break the connection: the client sees a TCP reset."""
        self.keeps_connection = False
        sock = self._writer.get_extra_info("socket")
        with contextlib.suppress(OSError):
            # Zero seconds of lingering makes the kernel send RST.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    async def stall(self) -> None:
        """Say nothing more until the client leaves."""
        self.keeps_connection = False
        with contextlib.suppress(ConnectionError):
            while await self._reader.read(65536):
                continue


async def read_request(reader: asyncio.StreamReader) -> tuple[str, str, dict[str, str], bytes] | None:
    """Method, path, headers and body of the next request; None when the client has gone."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ", 2)
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        headers.pop("", None)
        if headers.get("transfer-encoding", "").lower() == "chunked":
            body = await _read_chunked(reader)
        else:
            body = await reader.readexactly(int(headers.get("content-length", "0")))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return method, path, headers, body


async def _read_chunked(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readuntil(b"\r\n")
    return bytes(body)


def _head(status: int, fields: Mapping[str, str]) -> bytes:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:  # 529 is in no standard
        phrase = "Overloaded"
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status} {phrase}\r\n{lines}\r\n".encode("latin-1")
