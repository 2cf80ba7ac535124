"""Look up host names in daemon threads, so that a name server that never answers cannot hold up the exit."""

import asyncio
import socket
import threading

from aiohttp.abc import AbstractResolver, ResolveResult


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
