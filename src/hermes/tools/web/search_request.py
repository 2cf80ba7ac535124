"""Ask a search service over HTTP, within a time and a size."""

import asyncio
from typing import Any
from urllib.request import getproxies, proxy_bypass

import msgspec

from hermes.errors import ToolError
from hermes.tools.web.providers import ServiceCall

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
    import aiohttp  # noqa: PLC0415 - 150 ms that only a process which searches pays

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
