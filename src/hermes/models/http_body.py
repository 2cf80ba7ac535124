"""A large request body, sent in large pieces; imported with aiohttp, by the first such request."""

import asyncio

from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload

PIECE_BYTES = 256 * 1024


class LargeBody(Payload):
    """Bytes that are handed on piece by piece, so that a request that is given up ends at once.

    aiohttp's own payload for bytes warns above a megabyte, and the one for files sends many small pieces.
    """

    def __init__(self, body: bytes) -> None:
        super().__init__(body, content_type="application/octet-stream")
        self._size = len(body)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        text: str = self._value.decode(encoding, errors)
        return text

    async def write(self, writer: AbstractStreamWriter) -> None:
        await self.write_with_length(writer, None)

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        view = memoryview(self._value)[:content_length]
        for start in range(0, len(view), PIECE_BYTES):
            await writer.write(view[start : start + PIECE_BYTES])
            await asyncio.sleep(0)
