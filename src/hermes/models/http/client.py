"""The byte seam over aiohttp: post a body, get the answer's bytes as they arrive, within the turn's time.

Why aiohttp: docs/decisions/http-client.md. It is imported by the first request, not by importing this module.
"""

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Mapping
from functools import cache, lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Any

import msgspec

from hermes.models.http import errors
from hermes.models.wires.answer_values import any_json
from hermes.scope import TurnScope
from hermes.seams import DEFAULT_LIMITS, Body, HttpLimits

if TYPE_CHECKING:
    import aiohttp
    from aiohttp.payload import Payload
    from yarl import URL

ERROR_BODY_BYTES = 64 * 1024
PROBE_BODY_BYTES = 8 * 1024 * 1024
# Servers commonly close idle connections after 60 s; a request on one that is just closing would be lost.
KEEP_ALIVE_S = 45.0
# Above this size aiohttp warns about raw bytes.
_WHOLE_BODY_BYTES = 1 << 20


class HttpClient:
    """`HttpStream` for one event loop; connections are kept alive and shared by all sessions on that loop.

    Proxies come from the environment (`HTTPS_PROXY`, `NO_PROXY`, ...). Redirects are not followed, so that a key is
    only ever sent to the address it was given for: a 3xx is an `HttpStatusError`. Close it on the loop that used it.
    """

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._proxies: dict[str, str | None] = {}  # by address

    async def post_stream(
        self, url: str, headers: Mapping[str, str], body: Body, scope: TurnScope, limits: HttpLimits = DEFAULT_LIMITS
    ) -> AsyncGenerator[bytes, None]:
        """Send `body`; yield the answer's bytes as they arrive. Raises the errors of `hermes.models.http.errors`.

        `first_byte_s` counts from the call to the first byte of the body. Leaving early (`aclose`, cancellation)
        closes the socket; an answer read to its end gives the connection back for the next request.
        """
        waits = _Waits(_address(url), scope, limits)
        answer = await self._send("POST", url, headers, body, waits)
        try:
            content, received = answer.content, 0
            while True:
                try:
                    chunk = content.read_nowait()
                    if not chunk:
                        if content.at_eof():
                            return
                        async with waits.next(received):
                            chunk = await content.readany()
                except _lost() as error:
                    raise errors.HttpDisconnected(waits.address, received) from error
                if not chunk:
                    return
                received += len(chunk)
                yield chunk
        finally:
            answer.close()

    async def get_json(self, url: str, headers: Mapping[str, str], timeout_s: float) -> Any:
        """The decoded JSON that `url` answers with, for asking a server what it is. At most 8 MB."""
        waits = _Waits(_address(url), TurnScope("probe"), HttpLimits(timeout_s, timeout_s, timeout_s))
        answer = await self._send("GET", url, headers, b"", waits)
        try:
            async with waits.next(0):
                text = await _read(answer, PROBE_BODY_BYTES + 1, waits.address)
        finally:
            answer.close()
        if len(text) > PROBE_BODY_BYTES:
            raise errors.HttpBodyError(f"{waits.address}: answered with more than {PROBE_BODY_BYTES} bytes")
        try:
            return any_json(text)
        except msgspec.DecodeError as error:
            raise errors.HttpBodyError(
                f"{waits.address}: answered with something that is not JSON: {text[:80]!r}"
            ) from error

    async def close(self) -> None:
        """Close every connection; running requests end as `HttpDisconnected`. The next request opens anew."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _send(
        self, method: str, url: str, headers: Mapping[str, str], body: Body, waits: "_Waits"
    ) -> "aiohttp.ClientResponse":
        """The answer, its head read; `HttpStatusError` when it is none."""
        answer = await self._exchange(method, url, headers, body, waits)
        if 200 <= answer.status < 300:
            return answer
        try:
            async with waits.next(0):
                start = await _read(answer, ERROR_BODY_BYTES, waits.address, or_less=True)
        finally:
            answer.close()
        lowered = {name.lower(): value for name, value in answer.headers.items()}
        raise errors.HttpStatusError(waits.address, answer.status, lowered, start)

    async def _exchange(
        self, method: str, url: str, headers: Mapping[str, str], body: Body, waits: "_Waits"
    ) -> "aiohttp.ClientResponse":
        import aiohttp  # 150 ms that only a process which talks to a server pays

        connect_s, kind = waits.limit("connect")
        try:
            async with waits.next(0):
                return await self._open().request(
                    method,
                    _verbatim(url),
                    headers=headers,
                    data=_sendable(body),
                    timeout=_connecting(connect_s),
                    allow_redirects=False,
                    proxy=self._proxy(waits.address),
                )
        except aiohttp.ConnectionTimeoutError as error:
            raise errors.HttpTimeoutError(waits.address, kind, connect_s) from error
        except (aiohttp.ClientConnectorError, aiohttp.ClientHttpProxyError) as error:
            told = errors.HttpConnectError(f"{waits.address}: no connection: {_reason(error)}")
            told.nobody_listens = isinstance(getattr(error, "os_error", None), ConnectionRefusedError)
            raise told from error
        except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError) as error:
            raise errors.HttpConnectError(f"{waits.address!r} is not an http or https address") from error
        except aiohttp.ClientResponseError as error:
            raise errors.HttpBodyError(f"{waits.address}: the answer is not HTTP: {error.message[:200]}") from error
        except (aiohttp.ClientError, OSError) as error:
            if isinstance(error, errors.HttpError):
                raise
            raise errors.HttpDisconnected(waits.address, 0) from error
        except ValueError as error:  # a line break in a header: most often in a key copied from a file
            raise errors.HttpConnectError(f"{waits.address}: the request cannot be sent: {error}") from error

    def _proxy(self, address: str) -> str | None:
        """The proxy that the environment names for this address.

        aiohttp's own `trust_env` asks again for every request, in executor threads: that doubles a short exchange.
        """
        if address not in self._proxies:
            from urllib.request import getproxies, proxy_bypass  # slow to import, as aiohttp is

            scheme, _, rest = address.partition("://")
            host = rest.partition("/")[0]
            self._proxies[address] = None if proxy_bypass(host) else getproxies().get(scheme.lower())
        return self._proxies[address]

    def _open(self) -> "aiohttp.ClientSession":
        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed:
            import aiohttp  # see `_send`

            from hermes.models.http.aiohttp_parts import DaemonResolver  # as this does
            from hermes.models.http.request import PromptRequest, PromptResponse  # it imports aiohttp

            self._loop = loop
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S, resolver=DaemonResolver()),
                request_class=PromptRequest,
                response_class=PromptResponse,
                cookie_jar=aiohttp.DummyCookieJar(),
                # A compressed stream is held back until a block is full.
                headers={"accept-encoding": "identity", "user-agent": "hermes-runtime"},
                timeout=aiohttp.ClientTimeout(),
            )
        elif self._loop is not loop:
            raise RuntimeError("this HttpClient belongs to another event loop; make one for each")
        return self._session


class _Waits:
    """The limits of one request, each cut down to what the scope has left."""

    __slots__ = ("_limits", "_scope", "_started", "address")

    def __init__(self, address: str, scope: TurnScope, limits: HttpLimits) -> None:
        self.address = address
        self._scope = scope
        self._limits = limits
        self._started = asyncio.get_running_loop().time()

    def limit(self, kind: errors.TimeoutKind) -> tuple[float, errors.TimeoutKind]:
        """Seconds for a wait of this kind, and the kind that will have passed when they are over."""
        if kind == "connect":
            seconds = self._limits.connect_s
        elif kind == "first_byte":
            spent = asyncio.get_running_loop().time() - self._started
            seconds = max(0.0, self._limits.first_byte_s - spent)
        else:
            seconds = self._limits.idle_s
        left = self._scope.remaining()
        return (seconds, kind) if left is None or seconds <= left else (left, "total")

    def next(self, received: int) -> "_Wait":
        """A block that waits for the next bytes, after `received` of them."""
        seconds, kind = self.limit("idle" if received else "first_byte")
        return _Wait(self.address, kind, seconds, self._limits.first_byte_s if kind == "first_byte" else seconds)


class _Wait:
    """`asyncio.timeout` that says which limit passed. A class, because a generator costs more than the wait itself."""

    __slots__ = ("_address", "_asked_s", "_kind", "_timeout")

    def __init__(self, address: str, kind: errors.TimeoutKind, seconds: float, asked_s: float) -> None:
        self._address = address
        self._kind: errors.TimeoutKind = kind
        self._asked_s = asked_s
        self._timeout = asyncio.timeout(seconds)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError as passed:
            raise errors.HttpTimeoutError(self._address, self._kind, self._asked_s) from passed


async def _read(answer: "aiohttp.ClientResponse", size: int, address: str, *, or_less: bool = False) -> bytes:
    """Up to `size` bytes of the body. `or_less`: what had come when the connection broke is good enough."""
    text = bytearray()
    try:
        while len(text) < size and (chunk := await answer.content.readany()):
            text += chunk
    except _lost() as error:
        if not or_less:
            raise errors.HttpDisconnected(address, len(text)) from error
    return bytes(text[:size])


@lru_cache(maxsize=16)
def _connecting(seconds: float) -> "aiohttp.ClientTimeout":
    import aiohttp  # see `_send`

    return aiohttp.ClientTimeout(connect=seconds)


@cache
def _lost() -> tuple[type[Exception], ...]:
    import aiohttp  # see `_send`

    return (aiohttp.ClientError, OSError)


def _reason(error: "aiohttp.ClientError") -> str:
    """The words of the system; those of the library name its own settings beside them."""
    cause = getattr(error, "os_error", None)
    if not isinstance(cause, OSError) or not cause.errno:
        return str(error)
    return cause.strerror or str(cause) if isinstance(cause, socket.gaierror) else os.strerror(cause.errno)


def _sendable(body: Body) -> "bytes | Payload | None":
    if isinstance(body, bytes) and len(body) <= _WHOLE_BODY_BYTES:
        return body or None
    from hermes.models.http.aiohttp_parts import LargeBody  # it imports aiohttp

    return LargeBody((body,) if isinstance(body, bytes) else body)


def _verbatim(url: str) -> "str | URL":
    """`url` so that its escapes are sent as they are: a signature covers them, and aiohttp would undo some."""
    if "%" not in url or not url.isascii() or " " in url:
        return url
    from yarl import URL  # comes with aiohttp

    return URL(url, encoded=True)


@lru_cache(maxsize=64)
def _address(url: str) -> str:
    """`url` as far as it may be shown: neither a password nor a query."""
    scheme, separator, rest = url.partition("?")[0].partition("#")[0].partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}"
