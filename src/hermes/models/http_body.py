"""A large request body, sent in large pieces; imported with aiohttp, by the first such request."""

import asyncio

from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload

WRITE_BYTES = 1 << 20


class LargeBody(Payload):
    """Bytes that are handed on piece by piece: they are not copied, and a request that is given up ends at once.

    aiohttp's own payload for bytes is joined to the headers, and warns above a megabyte; the one for files sends many
    small pieces.
    """

    def __init__(self, pieces: tuple[bytes, ...]) -> None:
        super().__init__(pieces, content_type="application/octet-stream")
        self._size = sum(map(len, pieces))

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return b"".join(self._value).decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        for piece in self._value:
            view = memoryview(piece)
            for start in range(0, len(view), WRITE_BYTES):
                if start:
                    await asyncio.sleep(0)
                await writer.write(view[start : start + WRITE_BYTES])

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        assert content_length in (None, self._size), "nobody asks for a part of a body"
        await self.write(writer)
