"""Renewing a sign-in: a token that has run out is exchanged for the next one (OAuth 2.0, RFC 6749, section 6)."""

import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import TypeAlias
from urllib.parse import urlencode

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hermes.errors import ProviderError
from hermes.models.http.errors import HttpBodyError, HttpError
from hermes.models.providers.credentials import AuthFile, Credential
from hermes.models.wires.answer_values import read_json
from hermes.scope import TurnScope
from hermes.seams import HttpStream
from hermes.typed import json_decoder

TIMEOUT_S = 20.0
MAX_ANSWER_BYTES = 1_000_000
EARLY_S = 60.0  # a token is renewed this long before it runs out

Renew: TypeAlias = Callable[[Credential], Awaitable[Credential]]


class _Tokens(Struct, frozen=True):
    access_token: str
    refresh_token: str = ""
    expires_in: float = 0.0


def has_run_out(credential: Credential) -> bool:
    """Whether the token is known to be of no use any more."""
    renewal = credential.renewal
    return renewal is not None and 0 < renewal.expires_at < time.time() + EARLY_S


def renewer(http: HttpStream, auth: AuthFile, provider: str) -> Renew:
    """Renews tokens of `provider` and keeps them in `auth`; `ProviderError` when the person must sign in again."""

    async def renew(old: Credential) -> Credential:
        if (found := auth.newer(provider, old)) is not None:
            return found
        try:
            new = await _exchanged(http, old)
        except (HttpError, msgspec.DecodeError) as error:
            if (found := auth.newer(provider, old)) is not None:  # a token can be used once, and another was quicker
                return found
            raise ProviderError(
                f"the sign-in of {provider!r} could not be renewed: {error}. Sign in again, and put the tokens into "
                "auth.json",
                reason="auth",
            ) from error
        auth.renewed(provider, old, new)
        return new

    return renew


async def _exchanged(http: HttpStream, old: Credential) -> Credential:
    assert old.renewal is not None
    form = {"grant_type": "refresh_token", "refresh_token": old.renewal.refresh_token}
    if old.renewal.client_id:
        form["client_id"] = old.renewal.client_id
    headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
    scope, body = TurnScope("sign-in", timeout_s=TIMEOUT_S), bytearray()
    async with scope:
        chunks = http.post_stream(old.renewal.token_url, headers, urlencode(form).encode(), scope)
        async with aclosing(chunks) as incoming:  # type: ignore[type-var]  # every implementation is a generator
            async for chunk in incoming:
                body += chunk
                if len(body) > MAX_ANSWER_BYTES:
                    raise HttpBodyError(f"it answered with more than {MAX_ANSWER_BYTES} bytes")
    tokens = read_json(json_decoder(_Tokens).decode, bytes(body))
    renewal = replace(
        old.renewal,
        refresh_token=tokens.refresh_token or old.renewal.refresh_token,
        expires_at=time.time() + tokens.expires_in if tokens.expires_in else 0.0,
    )
    return replace(old, key=tokens.access_token, renewal=renewal)
