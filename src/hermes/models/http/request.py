"""Requests that are sent at once, and given up at once.

Before Python 3.12 aiohttp leaves the first write to the loop's next round. With many agents on one loop that round is
long, and all that is sent in it comes back together: the agents then wait for each other again and again.
"""

import sys
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from types import coroutine
from typing import TYPE_CHECKING, Any

from aiohttp import ClientRequest, ClientResponse

if TYPE_CHECKING:
    from aiohttp.abc import AbstractStreamWriter
    from aiohttp.connector import Connection


class PromptRequest(ClientRequest):
    """A request whose body is being written when `send` returns."""

    if sys.version_info < (3, 12):

        def write_bytes(
            self, writer: "AbstractStreamWriter", conn: "Connection", content_length: int | None = None
        ) -> Coroutine[Any, Any, None]:
            return _begun(super().write_bytes(writer, conn, content_length))


class PromptResponse(ClientResponse):
    """An answer whose socket is closed by `close`, also while the server does not take what is still to be sent.

    After the end of its body it has none any more.
    """

    def close(self) -> None:
        connection = self.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
        super().close()


def _begun(work: Coroutine[Any, Any, None]) -> Coroutine[Any, Any, None]:
    """The rest of `work`, whose first step is made here."""
    try:
        waits_for = work.send(None)
    except StopIteration:
        return _nothing()
    return _rest(work, waits_for)


async def _nothing() -> None:
    pass


async def _rest(work: Coroutine[Any, Any, None], waits_for: Any) -> None:
    await _resumed(work, waits_for)


@coroutine
def _resumed(work: Coroutine[Any, Any, None], waits_for: Any) -> Generator[Any, Any, None]:
    step: Callable[[], Any]
    while True:
        try:
            answer = yield waits_for
        except BaseException as error:  # noqa: BLE001 - a cancellation, which `work` answers
            step = partial(work.throw, error)
        else:
            step = partial(work.send, answer)
        try:
            waits_for = step()
        except StopIteration:
            return
