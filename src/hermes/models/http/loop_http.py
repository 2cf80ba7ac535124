"""One HTTP client per event loop, closed with its loop, behind one `HttpStream`."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from hermes.scope import TurnScope
from hermes.seams import DEFAULT_LIMITS, Body, HttpLimits

if TYPE_CHECKING:
    from hermes.models.http.client import HttpClient


class LoopHttp:
    """`HttpStream` that may be used from any loop: each has its own client and connections."""

    def __init__(self) -> None:
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[HttpClient, AsyncGenerator[HttpClient]]] = (
            WeakKeyDictionary()
        )

    def post_stream(
        self, url: str, headers: Mapping[str, str], body: Body, scope: TurnScope, limits: HttpLimits = DEFAULT_LIMITS
    ) -> AsyncGenerator[bytes, None]:
        held = self._clients.get(asyncio.get_running_loop())
        if held is not None:
            return held[0].post_stream(url, headers, body, scope, limits)
        return self._first(url, headers, body, scope, limits)

    async def _first(
        self, url: str, headers: Mapping[str, str], body: Body, scope: TurnScope, limits: HttpLimits
    ) -> AsyncGenerator[bytes, None]:
        client = await self._client()
        async with aclosing(client.post_stream(url, headers, body, scope, limits)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def get_json(self, url: str, headers: Mapping[str, str], timeout_s: float) -> Any:
        """The decoded JSON that `url` answers with."""
        client = await self._client()
        return await client.get_json(url, headers, timeout_s)

    async def close(self) -> None:
        """Close the connections of the running loop."""
        held = self._clients.pop(asyncio.get_running_loop(), None)
        if held is not None:
            await held[1].aclose()

    async def _client(self) -> "HttpClient":
        loop = asyncio.get_running_loop()
        held = self._clients.get(loop)
        if held is None:
            life = _life()
            held = self._clients[loop] = (await anext(life), life)
        return held[0]


async def _life() -> "AsyncGenerator[HttpClient]":
    """A client that is closed when its loop shuts down: loops close the generators that are still open."""
    from hermes.models.http.client import HttpClient  # a process that talks to no model pays nothing

    client = HttpClient()
    try:
        yield client
    finally:
        await client.close()
