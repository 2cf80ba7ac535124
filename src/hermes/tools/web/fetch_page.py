"""Get one page: every hop is checked and goes to the checked address, within one size and one time."""

import asyncio
import functools
import socket
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urljoin

from hermes.errors import ToolError
from hermes.tools.web import addresses as web_addresses

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL


InThread: TypeAlias = Callable[..., Awaitable[Any]]
Allow: TypeAlias = Callable[[web_addresses.FetchTarget], Awaitable[None]]
AskHost: TypeAlias = Callable[[str, str, int], Awaitable[None]]  # the URL, and the host and port in it

MAX_REDIRECTS = 10
USER_AGENT = "hermes-runtime (+web_extract)"
PAGES_FIRST = "text/html,application/xhtml+xml,application/json;q=0.9,text/*;q=0.9,application/pdf;q=0.8,*/*;q=0.5"
_HEADERS = {
    "accept-encoding": "gzip, deflate",
    "accept-language": "en,*;q=0.5",
    "user-agent": USER_AGENT,
}
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """How much a page may take."""

    timeout_s: float = 30.0
    max_bytes: int = 10_000_000
    max_redirects: int = MAX_REDIRECTS


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPage:
    """What a URL answered with, unpacked."""

    url: str  # after redirects
    content_type: str
    charset: str
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetcher:
    """Fetches pages by the same rules. `allow` is asked about each hop and raises to refuse it."""

    rules: web_addresses.AddressRules
    limits: FetchLimits
    in_thread: InThread
    allow: Allow
    lookup: web_addresses.Lookup = web_addresses.look_up
    accept: str = PAGES_FIRST
    ask_host: AskHost | None = None  # before a name is looked up, which tells it to others; raises to refuse it

    async def fetch(self, url: str) -> WebPage:
        """The page; `Refused` when a hop may not be made, `ToolError` when there is no page to have.

        The time of `allow` is not the page's: a person may be asked.
        """
        left = _Left(self.limits.timeout_s)
        for _ in range(self.limits.max_redirects + 1):
            await self._ask(url)
            async with left.spent():
                target = await self._checked(url)
            await self.allow(target)
            async with left.spent():
                answer = await self._get(target)
            if isinstance(answer, WebPage):
                return answer
            try:
                url = urljoin(url, answer)
            except ValueError as error:
                raise ToolError(f"it redirects to {answer[:200]!r}, which is no URL") from error
        raise ToolError(f"it redirects more than {self.limits.max_redirects} times")

    async def vetted(self, url: str) -> str:
        """`url`, when a service may be asked to fetch it: all that holds here holds there, as far as names resolve."""
        await self._ask(url)
        await self.allow(await self._checked(url, is_fetched_here=False))
        return url

    async def _ask(self, url: str) -> None:
        if self.ask_host is not None:
            place = web_addresses.check_url(url, self.rules, web_addresses.own_secrets())
            known = web_addresses.numeric(place[1])
            if known:  # nobody is asked about what would be refused after a yes
                web_addresses.check_addresses(url, place, [known], self.rules)
            await self.ask_host(url, place[1], place[2])

    async def _checked(self, url: str, *, is_fetched_here: bool = True) -> web_addresses.FetchTarget:
        place = web_addresses.check_url(url, self.rules, web_addresses.own_secrets())
        known = web_addresses.numeric(place[1])
        found = [known] if known else await self.in_thread(self.lookup, place[1], place[2])
        if not found and (
            not is_fetched_here or await self.in_thread(_proxy, place[0], f"{place[1]}:{place[2]}")
        ):  # only the service, or the proxy, knows names
            return web_addresses.FetchTarget(url, *place, addresses=(), is_private=False)
        return web_addresses.check_addresses(url, place, found, self.rules)

    async def _get(self, target: web_addresses.FetchTarget) -> "WebPage | str":
        """The page, or where it redirects to."""
        import aiohttp  # 150 ms that only a process which fetches pays
        from yarl import URL  # comes with aiohttp

        proxy = await self.in_thread(_proxy, target.scheme, f"{target.host}:{target.port}")
        addresses = target.addresses
        if proxy:
            where = URL(proxy)
            addresses = tuple(await self.in_thread(web_addresses.look_up, where.host or "", where.port or 0))
        # A session of its own for each hop: no cookie, no connection and no name outlives the check.
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                resolver=_resolver_class()(addresses), use_dns_cache=False, force_close=True
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(),
            auto_decompress=False,
        ) as session:
            try:
                headers = {**_HEADERS, "accept": self.accept}
                async with session.get(_address(target), headers=headers, allow_redirects=False, proxy=proxy) as answer:
                    return await self._read(answer, target)
            except (aiohttp.ClientError, OSError, ValueError) as error:
                raise ToolError(f"it could not be fetched: {type(error).__name__}: {error}") from error

    async def _read(self, answer: "aiohttp.ClientResponse", target: web_addresses.FetchTarget) -> "WebPage | str":
        if answer.status in _REDIRECTS and answer.headers.get("location"):
            return str(answer.headers["location"])
        if not 200 <= answer.status < 300:
            raise ToolError(f"the server answered {answer.status} {answer.reason or ''}".rstrip())
        limit = self.limits.max_bytes
        if (answer.content_length or 0) > limit:
            raise TooLarge(limit)
        unpacker = Unpacker(answer.headers.get("content-encoding", ""), limit)
        while chunk := await answer.content.readany():
            unpacker.feed(chunk)
        return WebPage(
            url=target.url,
            content_type=answer.content_type.lower() if "content-type" in answer.headers else "",
            charset=answer.charset or "",
            body=unpacker.body(),
        )


class _Left:
    """The time a page has left, over several waits."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._left_s = timeout_s

    @asynccontextmanager
    async def spent(self) -> AsyncIterator[None]:
        started = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(self._left_s):
                yield
        except TimeoutError as error:
            raise ToolError(f"no complete page came within {self._timeout_s:g} s") from error
        finally:
            self._left_s -= asyncio.get_running_loop().time() - started


def _proxy(scheme: str, host: str) -> str | None:
    """The proxy that the environment names for this host."""
    from urllib.request import getproxies, proxy_bypass  # slow to import, and the gate reads this module

    return None if proxy_bypass(host) else getproxies().get(scheme)


def _address(target: web_addresses.FetchTarget) -> "URL":
    """What is handed to the client. It connects to a literal address without asking the resolver, so none may differ.

    A literal is put where a numeric spelling stood: nobody reads that a second time.
    """
    from yarl import URL  # comes with aiohttp

    url = URL(target.url)
    if web_addresses.numeric(target.host):
        return url.with_host(target.addresses[0])
    if web_addresses.numeric(url.host or "") is not None:
        raise web_addresses.Refused("the URL can be read in two ways; write it plainly")
    return url


@functools.cache
def _resolver_class() -> Any:
    from aiohttp.abc import AbstractResolver, ResolveResult  # see `_get`

    class Pinned(AbstractResolver):
        """Knows the checked addresses and asks nobody."""

        def __init__(self, addresses: tuple[str, ...]) -> None:
            self._addresses = addresses

        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
        ) -> list[ResolveResult]:
            return [
                ResolveResult(
                    hostname=host,
                    host=address,
                    port=port,
                    family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                    proto=0,
                    flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
                )
                for address in self._addresses
            ]

        async def close(self) -> None:
            """Nothing is held."""

    return Pinned


_STEP = 1 << 20


class TooLarge(ToolError):
    """A body grew past its limit."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"it is larger than {limit_bytes / 1e6:g} MB; download it with the terminal if you need it")


class Unpacker:
    """Collects a body of at most `limit_bytes`, whatever it was packed with."""

    def __init__(self, encoding: str, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._body = bytearray()
        self._inflate: list[zlib._Decompress] = []
        self._maybe_raw = False
        for name in reversed([part.strip().lower() for part in encoding.split(",") if part.strip()]):
            if name in ("gzip", "x-gzip"):
                self._inflate.append(zlib.decompressobj(wbits=31))
            elif name == "deflate":
                self._inflate.append(zlib.decompressobj())
                self._maybe_raw = True
            elif name != "identity":
                raise ToolError(f"it is packed with {name!r}, which was not asked for")
        if len(self._inflate) > 1:
            raise ToolError("it is packed more than once")

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the wire. Raises `TooLarge`, or `ToolError` for a damaged stream."""
        if not self._inflate:
            self._keep(data)
            return
        while data:
            inflate = self._inflate[0]
            try:
                piece = inflate.decompress(data, _STEP)
            except zlib.error as error:
                if self._maybe_raw and not self._body:  # some servers send deflate without its header
                    self._maybe_raw, self._inflate[0] = False, zlib.decompressobj(wbits=-15)
                    continue
                raise ToolError(f"its compression is damaged: {error}") from error
            self._maybe_raw = False
            self._keep(piece)
            if inflate.eof:
                return  # what follows the end of the stream is not part of the page
            data = inflate.unconsumed_tail

    def body(self) -> bytes:
        """What has come so far."""
        return bytes(self._body)

    def _keep(self, data: bytes) -> None:
        if len(self._body) + len(data) > self._limit:
            raise TooLarge(self._limit)
        self._body += data
