"""A model under several keys: the same address and name, whichever key is used."""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing

from hermes.errors import ProviderError
from hermes.models.endpoint import Endpoint
from hermes.models.providers.credentials import ROTATING, Credential, CredentialPool
from hermes.models.providers.local import Ask
from hermes.models.providers.renewal import Renew, has_run_out
from hermes.models.wires.transport import HttpModel
from hermes.scope import TurnScope
from hermes.seams import ModelRequest
from hermes.types import ModelEvent


class PooledModel:
    """`Model` over a pool. A key is kept until it is refused; `rotate` then goes on with the next.

    A token that has run out is renewed before the next call, and one that is refused is renewed once.
    """

    def __init__(
        self, pool: CredentialPool, make: Callable[[Credential], HttpModel], renew: Renew | None = None
    ) -> None:
        self._pool = pool
        self._make = make
        self._renew = renew
        self._made: dict[str, HttpModel] = {}
        self._credential = pool.pick()
        self._rate_limited: set[str] = set()  # keys that were given a second chance
        self._renewed: set[str] = set()  # tokens that were just renewed, or could not be
        self._is_stale = False  # the token in use was refused

    @property
    def name(self) -> str:
        return self._model().name

    @property
    def provider(self) -> str:
        return self._model().provider

    @property
    def base_url(self) -> str:
        return self._model().base_url

    @property
    def endpoint(self) -> Endpoint:
        """With the key in use."""
        return self._model().endpoint

    async def stream(self, request: ModelRequest, scope: TurnScope) -> AsyncIterator[ModelEvent]:
        async with aclosing(self._model().stream(request, scope)) as events:  # type: ignore[type-var]  # a generator
            async for event in events:
                yield event
        self._renewed.clear()

    @property
    def is_ready(self) -> bool:
        return self._renew is None or not (self._is_stale or has_run_out(self._credential))

    @property
    def preparing(self) -> str:
        return f"renewing the sign-in of {self.provider}"

    async def prepare(self, ask: Ask | None) -> None:
        """Renew the token in use; `ProviderError` when it cannot be."""
        old, self._is_stale = self._credential, False
        assert self._renew is not None
        self._renewed = {old.id}
        new = await self._renew(old)
        self._renewed.add(new.id)
        self._pool.swap(old, new)
        self._credential = new

    def rotate(self, error: ProviderError) -> str:
        """What can be tried now. A rate limit rests a key only when it comes a second time."""
        key = self._credential
        if error.reason == "auth" and key.renewal is not None and key.id not in self._renewed:
            self._is_stale = True
            return "a renewed sign-in"
        if error.reason not in ROTATING or len(self._pool) < 2:
            return ""
        if error.reason == "rate_limit" and key.id not in self._rate_limited:
            self._rate_limited.add(key.id)
            return ""
        self._rate_limited.discard(key.id)
        if not self._pool.refused(key, error):
            return ""
        self._credential = self._pool.pick()
        return "another key"

    def _model(self) -> HttpModel:
        found = self._made.get(self._credential.id)
        if found is None:
            found = self._made[self._credential.id] = self._make(self._credential)
        return found
