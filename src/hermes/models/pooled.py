"""A model under several keys: the same address and name, whichever key is used."""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing

from hermes.errors import ProviderError
from hermes.models.credentials import ROTATING, Credential, CredentialPool
from hermes.models.endpoint import Endpoint
from hermes.models.transport import HttpModel
from hermes.scope import TurnScope
from hermes.seams import ModelRequest
from hermes.types import ModelEvent


class PooledModel:
    """`Model` over a pool. A key is kept until it is refused; `rotate` then goes on with the next."""

    def __init__(self, pool: CredentialPool, make: Callable[[Credential], HttpModel]) -> None:
        self._pool = pool
        self._make = make
        self._made: dict[str, HttpModel] = {}
        self._credential = pool.pick()
        self._rate_limited: set[str] = set()  # keys that were given a second chance

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

    def rotate(self, error: ProviderError) -> bool:
        """Whether another key can be tried now. A rate limit rests a key only when it comes a second time."""
        if error.reason not in ROTATING or len(self._pool) < 2:
            return False
        if error.reason == "rate_limit" and self._credential.id not in self._rate_limited:
            self._rate_limited.add(self._credential.id)
            return False
        self._rate_limited.discard(self._credential.id)
        if not self._pool.refused(self._credential, error):
            return False
        self._credential = self._pool.pick()
        return True

    def _model(self) -> HttpModel:
        found = self._made.get(self._credential.id)
        if found is None:
            found = self._made[self._credential.id] = self._make(self._credential)
        return found
