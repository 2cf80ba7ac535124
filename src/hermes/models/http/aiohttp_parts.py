"""Look up host names in daemon threads, so that a name server that never answers cannot hold up the exit."""

import asyncio
import socket
import threading

from aiohttp.abc import AbstractResolver, AbstractStreamWriter, ResolveResult
from aiohttp.payload import Payload


class DaemonResolver(AbstractResolver):
    """The system's `getaddrinfo`. The loop's own executor would do the same, but is joined when the process ends."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of `host`; `OSError` when it has none."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[ResolveResult]] = loop.create_future()

        def settle(found: list[ResolveResult] | OSError) -> None:
            if answer.done():  # cancelled meanwhile
                return
            if isinstance(found, OSError):
                answer.set_exception(found)
            else:
                answer.set_result(found)

        def work() -> None:
            found: list[ResolveResult] | OSError
            try:
                found = _look_up(host, port, family)
            except OSError as error:
                found = error
            except UnicodeError as error:  # no name server could know such a name
                found = socket.gaierror(socket.EAI_NONAME, str(error))
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, found)

        threading.Thread(target=work, name="hermes-dns", daemon=True).start()
        return await answer

    async def close(self) -> None:
        """Nothing is held open; a look-up that still runs is abandoned."""


def _look_up(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, family=family, flags=socket.AI_ADDRCONFIG)
    return [
        ResolveResult(
            hostname=host,
            host=str(address[0]),
            port=int(address[1]),
            family=found_family,
            proto=proto,
            flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
        )
        for found_family, _, proto, _, address in infos
    ]


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
