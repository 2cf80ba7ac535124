"""What a model may be able to do beside answering; its client asks once."""

from typing import NamedTuple, Protocol, runtime_checkable

from hermes.errors import ProviderError
from hermes.models.endpoint import Endpoint
from hermes.models.providers.local import Ask
from hermes.seams import Model
from hermes.types import Usage


@runtime_checkable
class Described(Protocol):
    """A model that knows its window, its output limit and its time."""

    @property
    def endpoint(self) -> Endpoint: ...


class Rotating(Protocol):
    """A model under several keys."""

    def rotate(self, error: ProviderError) -> str:
        """What can be tried now, such as another key; empty when there is nothing."""


class Preparing(Protocol):
    """A model that has something to do before it is called: ask its server, start it, renew a sign-in."""

    @property
    def is_ready(self) -> bool: ...
    @property
    def preparing(self) -> str:
        """What that is, in words."""

    async def prepare(self, ask: Ask | None) -> None: ...


class Remarking(Protocol):
    """A model that may have to tell something about its own server."""

    def remark(self, usage: Usage) -> str | None:
        """A word to the person about the last answer."""


_NEEDED = (
    ("endpoint",),
    ("is_ready", "preparing", "prepare"),
    ("remark",),
    ("rotate",),
)  # in the order of the fields below


class Abilities(NamedTuple):
    """The model itself, where it can. Found by its members: a check against a protocol takes many times as long."""

    described: Described | None
    preparing: Preparing | None
    remarking: Remarking | None
    rotating: Rotating | None

    @classmethod
    def of(cls, model: Model) -> "Abilities":
        return cls._make(model if all(hasattr(model, name) for name in needed) else None for needed in _NEEDED)
