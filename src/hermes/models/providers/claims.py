"""Who says where the model is: config.yaml, the environment, the command line and the caller, one over the other."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from hermes.config.sections import model as model_section
from hermes.config.settings import Settings
from hermes.models.providers.catalogue import find_provider
from hermes.models.providers.key_homes import Home


class Claim(Struct, frozen=True, kw_only=True):
    """What one place says: who serves the model, where that is, and with which key."""

    provider: str = ""
    base_url: str = ""
    api_key: str = ""
    key_source: str = ""  # in words
    is_filed: bool = False  # stands in config.yaml, which knows nothing of variables and options


def configured_claims(settings: Settings) -> list[Claim]:
    """What config.yaml, the environment and the command line say, the weakest first."""
    filed, environment, flags = settings.layers(model_section.Section)
    return [
        replace(_claim(filed), key_source="model.api_key", is_filed=True),
        _claim(environment),
        replace(_claim(flags), key_source="the key of the command line"),
    ]


def address_of(claims: Sequence[Claim]) -> Claim:
    """Provider and address in force, the strongest claim last.

    Who names an address alone means the server that is there, and who names a provider means the provider: an
    address that somebody else has given for another one is not taken over.
    """
    provider = base_url = ""
    for claim in claims:
        if claim.base_url:
            provider, base_url = claim.provider, claim.base_url
        elif claim.provider:
            base_url = base_url if is_at(claim.provider, provider, base_url) else ""
            provider = claim.provider
    return Claim(provider=provider, base_url=base_url)


def is_at(wanted: str, provider: str, base_url: str) -> bool:
    """Whether `wanted` is served at `base_url`, which was given for `provider`."""
    if _canonical(wanted) == _canonical(provider):
        return True
    if _canonical(provider):
        return False
    return _canonical(wanted) == "custom" or Home(provider=wanted).has(base_url)


def _canonical(provider: str) -> str:
    found = find_provider(provider)
    return found.id if found is not None else "" if provider == "auto" else provider.strip().lower()


def _claim(said: dict[str, Any]) -> Claim:
    provider, base_url, api_key = (str(said.get(name) or "") for name in ("provider", "base_url", "api_key"))
    return Claim(provider=provider, base_url=base_url, api_key=api_key)
