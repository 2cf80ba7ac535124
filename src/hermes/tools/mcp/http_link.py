"""A server that listens somewhere: streamable HTTP, or the older SSE, with certificates and a limit on size."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from hermes.errors import ToolError
from hermes.tools.mcp.server_config import ServerConfig
from hermes.tools.mcp.stdio_pipe import MAX_LINE

if TYPE_CHECKING:
    import httpx2
    from mcp.client._transport import TransportStreams

PREFLIGHT_S = 5.0
CONNECT_S = 30.0
_ANSWERS = ("application/json", "text/event-stream")
log = logging.getLogger(__name__)


class HttpNews(Struct):
    """What was seen on the way: a 404 says that the server knows nothing of the session."""

    lost_session: bool = False
    status: int = 0


@asynccontextmanager
async def http_streams(
    config: ServerConfig, auth: "httpx2.Auth | None", news: HttpNews
) -> AsyncIterator["TransportStreams"]:
    """The server's messages; `ToolError` for an address that answers like something else."""
    from mcp.client.sse import sse_client
    from mcp.client.streamable_http import streamable_http_client

    entry = config.entry
    async with _client(config, auth, news) as client:
        if entry.transport == "sse":

            def same_client(
                headers: dict[str, str] | None = None,  # noqa: ARG001 - it has its own
                timeout: "httpx2.Timeout | None" = None,  # noqa: ARG001
                auth: "httpx2.Auth | None" = auth,
            ) -> "httpx2.AsyncClient":
                return _client(config, auth, news)

            async with sse_client(
                entry.url,
                httpx_client_factory=same_client,
                auth=auth,
                timeout=CONNECT_S,
                sse_read_timeout=entry.timeout + 60,
            ) as streams:
                yield streams
            return
        if not entry.skip_preflight and auth is None:
            await preflight(client, entry.url)
        async with streamable_http_client(entry.url, http_client=client, max_sse_event_size=MAX_LINE) as streams:
            yield streams


async def preflight(client: "httpx2.AsyncClient", url: str) -> None:
    """One look whether the address could be a server's: a web page that answers with 200 is none."""
    import httpx2

    try:
        async with asyncio.timeout(PREFLIGHT_S):
            async with client.stream("HEAD", url, follow_redirects=False) as response:
                kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
                is_page = response.is_success and bool(kind) and kind not in _ANSWERS
            if not is_page:
                return
            greeting = {"jsonrpc": "2.0", "id": 0, "method": "ping"}
            accept = {"Accept": ", ".join(_ANSWERS)}
            async with client.stream("POST", url, json=greeting, headers=accept, follow_redirects=False) as response:
                kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
                if response.is_success and kind and kind not in _ANSWERS:
                    raise ToolError(f"it answers with {kind!r}, so there is no MCP server at this address")
    except (TimeoutError, httpx2.TransportError):
        return  # whether it is there, the greeting finds out


def limited(inner: Any, most: int, trouble: str = "") -> "httpx2.AsyncByteStream":
    """The bytes of `inner`; `StreamError` in place of those beyond `most`, or of all when there is `trouble`."""
    import httpx2

    class Limited(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            if trouble:
                raise httpx2.StreamError(trouble)
            size = 0
            async for chunk in inner:
                size += len(chunk)
                if size > most:
                    raise httpx2.StreamError(f"the answer has more than the {most / 1e6:.0f} MB that are read")
                yield chunk

        async def aclose(self) -> None:
            await inner.aclose()

    return Limited()


def _client(config: ServerConfig, auth: "httpx2.Auth | None", news: HttpNews) -> "httpx2.AsyncClient":
    import httpx2

    entry = config.entry

    async def seen(response: "httpx2.Response") -> None:
        news.status = response.status_code
        if response.status_code == 404 and response.request.headers.get("mcp-session-id"):
            news.lost_session = True

    async def bounded(response: "httpx2.Response") -> None:
        """An answer in one piece is read up to a limit, whatever it says of its size. Events have their own limit.

        What is wrong with it is raised to whoever reads it, so that it costs one call: raised here it would cost all.
        """
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            packed, trouble = response.headers.get("content-encoding", "identity"), ""
            if packed != "identity":  # a few bytes may unpack to any size
                trouble = f"the answer is packed ({packed[:20]}), which was not asked for"
            response.stream = limited(response.stream, MAX_LINE, trouble)

    return httpx2.AsyncClient(
        headers={"Accept-Encoding": "identity", **entry.headers},
        auth=auth,
        timeout=httpx2.Timeout(CONNECT_S, read=entry.timeout + 60),
        verify=_certificates(config),
        event_hooks={"response": [seen, bounded]},
    )


def _certificates(config: ServerConfig) -> ssl.SSLContext | bool:
    """What is believed, and what is shown; `ToolError` for files that cannot be read."""
    entry = config.entry
    if not config.entry.url.startswith("https"):
        return True
    try:
        if entry.ssl_verify is False:
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        else:
            context = ssl.create_default_context(cafile=entry.ssl_verify if isinstance(entry.ssl_verify, str) else None)
        cert = entry.client_cert
        if cert:
            first, key = (cert, entry.client_key or None) if isinstance(cert, str) else (cert[0], cert[-1])
            context.load_cert_chain(first, key)
    except (OSError, ssl.SSLError) as error:
        raise ToolError(f"its certificates cannot be used: {error}") from error
    return context
