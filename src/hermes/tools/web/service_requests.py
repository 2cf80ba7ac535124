"""Ask a search service over HTTP, or one that reads a page for you, within a time and a size."""

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.request import getproxies, proxy_bypass

import msgspec

from hermes.errors import ToolError
from hermes.tools.web.page_text import PageText
from hermes.tools.web.providers import (
    SearchService,
    ServiceCall,
    known_services,
    missing,
    request_of,
    text_at,
    value_at,
)
from hermes.typed import convert

TIMEOUT_S = 30.0
MAX_ANSWER_BYTES = 8_000_000
_SHOWN_CHARS = 300


async def ask(call: ServiceCall, name: str, timeout_s: float = TIMEOUT_S) -> Any:
    """The JSON that the service answers with. Redirects are not followed: a key goes to its own service only."""
    try:
        async with asyncio.timeout(timeout_s):
            status, text = await _send(call, name)
    except TimeoutError as error:
        raise ToolError(f"{name} gave no answer within {timeout_s:g} s; try again, or with fewer words") from error
    if not 200 <= status < 300:
        raise ToolError(_complaint(name, status, text))
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise ToolError(f"{name} answered with something that is not JSON") from error


async def _send(call: ServiceCall, name: str) -> tuple[int, bytes]:
    import aiohttp  # 150 ms that only a process which searches pays

    scheme, _, rest = call.url.partition("://")
    host = rest.partition("/")[0]
    proxy = None if proxy_bypass(host) else getproxies().get(scheme)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), timeout=aiohttp.ClientTimeout()) as session:
        try:
            async with session.request(
                call.method,
                call.url,
                headers={"user-agent": "hermes-runtime", **call.headers},
                data=call.body or None,
                allow_redirects=False,
                proxy=proxy,
            ) as answer:
                text = bytearray()
                async for chunk in answer.content.iter_any():
                    text += chunk
                    if len(text) > MAX_ANSWER_BYTES:
                        raise ToolError(f"the answer of {name} is larger than {MAX_ANSWER_BYTES / 1e6:g} MB")
                return answer.status, bytes(text)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ToolError(f"{name} could not be asked: {type(error).__name__}: {error}") from error


def _complaint(name: str, status: int, text: bytes) -> str:
    if status in (401, 403):
        return f"{name} refused the key it was given ({status}); the user must look at it"
    if status == 429:
        return f"{name} asks to wait ({status}); try again later"
    start = text[:_SHOWN_CHARS].decode("utf-8", "replace").strip()
    return f"{name} answered {status}" + (f": {start}" if start else "")


_COMPLAINTS = ("failed_results", "errors", "statuses")


def reader_of(web: Mapping[str, Any]) -> SearchService | None:
    """The service that the settings ask for; None when this runtime fetches by itself."""
    asked = str(web.get("extract_backend") or "local").strip().lower()
    if asked == "local":
        return None
    readers = {one.name: one for one in known_services() if one.page}
    if asked not in readers:
        names = ", ".join(readers)
        raise ToolError(f"there is no service {asked!r} that reads pages; the user can set one of local, {names}")
    found: SearchService = convert(msgspec.to_builtins(readers[asked]) | readers[asked].page, SearchService)
    lacking = missing(found, web)
    if lacking:
        raise ToolError(f"the service {found.name!r} cannot be used: {lacking}")
    return found


async def read_through(reader: SearchService, web: Mapping[str, Any], url: str, timeout_s: float) -> PageText:
    """The text of a page as the service gives it; `ToolError` with its complaint when there is none."""
    answer = await ask(request_of(reader, web, url, 1), reader.name, timeout_s)
    found = value_at(answer, reader.results)
    row = found[0] if isinstance(found, list) and found else found
    content = next((text for name in reader.description if (text := text_at(row, name))), "")
    if not content:
        raise ToolError(_page_complaint(answer) or f"{reader.name} found no text on the page")
    return PageText(text_at(row, reader.title), content)


def _page_complaint(answer: Any) -> str:
    for name in _COMPLAINTS:
        rows = value_at(answer, name)
        for row in rows if isinstance(rows, list) else ():
            said = text_at(row, "error") or text_at(row, "content") or text_at(row, "error.tag")
            if said:
                return said
    return text_at(answer, "error")
