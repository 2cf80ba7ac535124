"""Every key that could be meant for an address, and which of them belong there.

A key belongs where it was written down: to the address beside it or, under the name of a provider's variable, to that
provider's own hosts. Nothing that only changes where a request goes (an option, another variable, another section)
takes a key along. docs/models.md says it to people; tests/models/test_key_homes.py holds it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from hermes.config.sections import model as model_section
from hermes.config.sections import top as top_section
from hermes.config.settings import Settings
from hermes.errors import ConfigError
from hermes.models.providers.catalogue import ProviderEntry, find_provider, providers
from hermes.models.providers.credentials import AuthFile, Credential
from hermes.models.providers.key_homes import Home, host_of


class Claim(Struct, frozen=True, kw_only=True):
    """What one place says: who serves the model, where that is, and with which key."""

    provider: str = ""
    base_url: str = ""
    api_key: str = ""
    key_source: str = ""  # in words
    is_filed: bool = False  # stands in config.yaml, which knows nothing of variables and options


def configured_claims(settings: Settings) -> tuple[Claim, ...]:
    """What config.yaml, the environment and the command line say, the weakest first."""
    return settings.once(_configured_claims)


def _configured_claims(settings: Settings) -> tuple[Claim, ...]:
    filed, environment, flags = settings.layers(model_section.Section)
    return (
        replace(_claim(filed), key_source="model.api_key", is_filed=True),
        _claim(environment),
        replace(_claim(flags), key_source="the key of the command line"),
    )


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


def own_providers(settings: Settings) -> dict[str, top_section.Provider]:
    """Those of config.yaml that are not in the catalogue, by their lowered names."""
    top = settings.of(top_section.Section)
    named = {name.lower(): entry for name, entry in top.providers.items() if find_provider(name) is None}
    return {entry.name.lower(): entry for entry in top.custom_providers if entry.name} | named


def configured_provider(settings: Settings, entry: ProviderEntry) -> top_section.Provider:
    """What config.yaml says of a provider of the catalogue, or of an own one."""
    named = settings.of(top_section.Section).providers.get(entry.id)
    return named or own_providers(settings).get(entry.id) or top_section.Provider()


def usual_address(settings: Settings, entry: ProviderEntry) -> str:
    """The address of `entry`; empty when it has none."""
    if moved := configured_provider(settings, entry).base_url:
        return moved
    if entry.base_url_env and (set_by := settings.lookup(entry.base_url_env)):
        return set_by
    if entry.kind == "aws":
        from hermes.models.wires.bedrock_converse import bedrock_url  # only who uses it

        return bedrock_url(region(settings))
    return entry.base_url or (auth_file(settings).address(entry.id) if entry.kind == "oauth" else "")


def region(settings: Settings) -> str:
    """The AWS region."""
    from hermes.config.sections import bedrock  # a start pays for its own provider alone

    section = settings.of(bedrock.Section)
    return section.region or settings.lookup("AWS_REGION") or settings.lookup("AWS_DEFAULT_REGION") or ""


def auth_file(settings: Settings) -> AuthFile:
    """The keys and sign-ins that are stored in the home."""
    return AuthFile(settings.home / "auth.json")


class Target(Struct, frozen=True, kw_only=True):
    """Where a request goes, and who said so, the strongest claim last."""

    claims: Sequence[Claim]
    entry: ProviderEntry
    base_url: str
    is_own: bool = False  # a server of the user's own, by its name: no variable is its own


class Keys(Struct, frozen=True):
    """The keys for an address, in the order they are tried, and those that were found but belong elsewhere."""

    kept: tuple[Credential, ...] = ()
    withheld: tuple[Credential, ...] = ()


def keys_for(settings: Settings, target: Target) -> Keys:
    """Keys of the strongest place that has any for this address, then those that are stored in auth.json."""
    kept: list[Credential] = []
    withheld: list[Credential] = []
    for group in _groups(settings, target):
        kept = [one for one in group if one.belongs_to(target.base_url)]
        withheld += [one for one in group if not one.belongs_to(target.base_url)]
        if kept:
            break
    for one in auth_file(settings).stored(target.entry.id, _stored_homes(settings, target)):
        (kept if one.belongs_to(target.base_url) else withheld).append(one)
    return Keys(tuple(kept), tuple(withheld))


def sentence(target: Target, withheld: Credential) -> str:
    """What a person is told about a key that stays here, and how the address can have one."""
    host, entry = host_of(target.base_url), target.entry
    where = " or ".join(str(home) for home in withheld.homes) or "no address that is written beside it"
    if target.is_own:
        how = f"set providers.{entry.id}.key_env to the variable that holds its key"
    elif entry.env and Home(provider=entry.id).has(target.base_url):
        how = f"set it: hermes config set {entry.env[0]} KEY"
    elif target.claims[-1].is_filed and target.claims[-1].base_url:
        how = "write it as api_key beside that address in config.yaml"
    elif target.claims[0].base_url == target.base_url:
        how = "set it: hermes config set model.api_key KEY"
    else:
        how = "write both down: hermes model NAME --base-url URL --api-key KEY"
    return f"{withheld.source} belongs to {where} and is not sent to {host}; if {host} needs a key, {how}"


def variable(settings: Settings, name: str) -> str:
    """What a variable that config.yaml names for a key holds."""
    found = settings.lookup(name)
    if not found:
        raise ConfigError(f"the variable {name}, which should hold a key, is not set")
    return found


# -- where keys are written down ----------------------------------------------------------------------------------


def _groups(settings: Settings, target: Target) -> Iterator[list[Credential]]:
    """The keys of each place that has some, the strongest place first."""
    for number, claim in reversed(list(enumerate(target.claims))):
        if claim.api_key:
            homes = _homes_of_claim(settings, target, number)
            yield [Credential(claim.api_key, homes=homes, source=claim.key_source)]
    own = configured_provider(settings, target.entry)
    if own.api_key or own.key_env:
        key = own.api_key or variable(settings, own.key_env)
        homes = (Home(address=own.base_url),) if own.base_url else (Home(provider=target.entry.id),)
        yield [Credential(key, homes=homes, source=f"the key of providers.{target.entry.id}")]
    if not target.is_own:
        yield _from_variables(settings, target)


def _homes_of_claim(settings: Settings, target: Target, number: int) -> tuple[Home, ...]:
    """Where the key of a claim belongs: to the address that was in force where it stands."""
    claim = target.claims[number]
    known = [one for one in target.claims[: number + 1] if one.is_filed or not claim.is_filed]
    said = address_of(known)
    if said.base_url:
        return (Home(address=said.base_url),)
    own = own_providers(settings).get(said.provider.lower())
    if own is not None:
        return (Home(address=own.base_url),)
    entry = find_provider(said.provider)
    if entry is None:
        # A key alone, for this run: it is for whatever the run asks, unless a stronger claim moves that.
        is_last_word = not claim.is_filed and address_of(target.claims) == said
        return (Home(address=target.base_url),) if is_last_word else ()
    if claim.is_filed:
        moved = configured_provider(settings, entry).base_url
        return (Home(address=moved),) if moved else (Home(provider=entry.id),)
    return (Home(address=usual_address(settings, entry)),)


def _from_variables(settings: Settings, target: Target) -> list[Credential]:
    """Keys of the provider's variables. A server without a provider gets those that were set beside its address."""
    entry = target.entry
    if entry.kind != "any":
        return list(_variables_of(settings, entry))
    every = [one for known in providers().values() for one in _variables_of(settings, known)]
    # OpenAI's is looked at because servers that speak its protocol ask for one, and are then told about.
    return [one for one in every if one.belongs_to(target.base_url) or one.source == "OPENAI_API_KEY"]


def _variables_of(settings: Settings, entry: ProviderEntry) -> Iterator[Credential]:
    beside = entry.base_url_env or entry.key_url_env
    for name in entry.env:
        source = _source_of(settings, name)
        if source.get(name):
            address = source.get(beside) if beside else ""
            homes = (Home(address=address),) if address else (Home(provider=entry.id),)
            yield Credential(source[name], homes=homes, source=name)


def _source_of(settings: Settings, name: str) -> Mapping[str, str]:
    """The environment or .env, whichever a variable is taken from: an address in the other was not set beside it."""
    return settings.environ if name in settings.environ else settings.secrets


def _stored_homes(settings: Settings, target: Target) -> tuple[Home, ...]:
    """Where keys of auth.json belong that stand beside no address."""
    entry = target.entry
    if target.is_own:
        return (Home(address=configured_provider(settings, entry).base_url),)
    if entry.kind != "any":
        return (Home(provider=entry.id),)
    filed = target.claims[0]
    is_custom = filed.provider in ("", "auto", entry.id)
    return (Home(address=filed.base_url),) if filed.base_url and is_custom else ()
