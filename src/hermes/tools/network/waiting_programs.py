"""Programs that wait for the word about a host: when the last of them has gone, its question goes, too."""

import asyncio
import contextlib
import select
import socket
from collections.abc import Callable, Iterator

from hermes.tools.supervisor.threads import in_daemon_thread

LOOK_EVERY_S = 0.25


class WaitingPrograms:
    """The connections that wait, by what they wait for. It lives on the loop of a session's network."""

    def __init__(self, is_held: Callable[[socket.socket], bool]) -> None:
        self._is_held = is_held  # whether a program still has its end; it may block
        self._waiting: dict[str, set[socket.socket]] = {}

    @contextlib.contextmanager
    def waiting(self, key: str, connection: socket.socket) -> Iterator[None]:
        """While `connection` waits for the word on `key`."""
        self._waiting.setdefault(key, set()).add(connection)
        try:
            yield
        finally:
            left = self._waiting[key]
            left.discard(connection)
            if not left:
                del self._waiting[key]

    async def none_left(self, key: str) -> None:
        """Returns when nobody waits for `key` any more."""
        while await self._is_wanted(key):  # noqa: ASYNC110 - the kernel has no event for it
            await asyncio.sleep(LOOK_EVERY_S)

    async def _is_wanted(self, key: str) -> bool:
        for connection in list(self._waiting.get(key, ())):
            # One that has said all it had to say may still wait for an answer: only a socket nobody holds is gone.
            if not _has_said_all(connection) or await in_daemon_thread(self._is_held, connection):
                return True
        return False


def _has_said_all(connection: socket.socket) -> bool:
    if connection.fileno() < 0:
        return True
    looked = select.poll()
    looked.register(connection, select.POLLRDHUP)
    return bool(looked.poll(0))
