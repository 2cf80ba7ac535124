"""Which model a name, an address and the settings mean."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from hermes.config import paths
from hermes.config.sections import agent as agent_section
from hermes.config.sections import model as model_section
from hermes.config.sections import top as top_section
from hermes.config.settings import Settings
from hermes.errors import ConfigError, UserError
from hermes.models.endpoint import ApiMode, Endpoint, Quirks
from hermes.models.providers import catalogue, keyring
from hermes.models.providers.credentials import Credential, CredentialPool, with_key
from hermes.models.providers.key_homes import Home
from hermes.models.providers.local import LocalModel
from hermes.models.providers.metadata import load_metadata
from hermes.models.wires.transport import HttpModel, make_model
from hermes.seams import HttpLimits, HttpStream, Model
from hermes.types import JsonObject

_ADDRESS = re.compile(r"https?://[^/?#]", re.IGNORECASE)
NO_MODEL = (
    "no model is configured: run hermes model, or give --model and --base-url, "
    "or set model.default in config.yaml (hermes config set model.default NAME)"
)
CONNECT_S = 30.0
PARETO_ROUTER = "pareto-router"  # of OpenRouter: chooses among models that are good at code


class ModelQuery(Struct, frozen=True, kw_only=True):
    """What a caller asks for; what is given here wins over what is configured."""

    name: str = ""
    base_url: str = ""
    provider: str = ""
    api_key: str = ""
    key_env: str = ""
    api_mode: str = ""
    pool: CredentialPool | None = None
    routing: JsonObject = field(default_factory=dict)  # for aggregators
    over: keyring.Claim | None = None  # what stands where this says nothing: the main model, for its helpers
    is_filed: bool = False  # an entry of config.yaml
    argv: tuple[str, ...] = ()  # the program of another agent that is the model


class Resolved(Struct, frozen=True):
    """An endpoint, the keys for it, and where the decision came from."""

    endpoint: Endpoint
    entry: catalogue.ProviderEntry
    source: str
    pool: CredentialPool | None = None
    models: tuple[str, ...] = ()  # those that config.yaml names, for a provider that tells none
    argv: tuple[str, ...] = ()  # the program that is the model


def resolve_model(settings: Settings, http: HttpStream, asked: ModelQuery | None = None) -> Model:
    """The model to call."""
    wanted = asked or ModelQuery()
    found = resolve(settings, wanted)
    pool = found.pool
    if pool is not None and (len(pool) > 1 or pool.is_renewable):
        from hermes.models.providers.key_pool import PooledModel  # for who has several keys
        from hermes.models.providers.renewal import renewer

        renew = renewer(http, keyring.auth_file(settings), found.entry.id) if pool.is_renewable else None
        return PooledModel(pool, lambda one: make_model(_keyed(found.endpoint, found.entry, one, wanted), http), renew)
    return wrapped(found, http, paths.cache_dir(settings.home), settings.environ)


def wrapped(found: Resolved, http: HttpStream, cache_dir: Any, environ: Mapping[str, str] | None = None) -> Model:
    """The model of `found`; one on this machine is asked what it is before its first call."""
    if found.entry.kind == "box":
        from hermes.models.box.model import BoxModel  # only who uses it

        return BoxModel(found.endpoint, http, paths.root_home(environ))
    if found.entry.kind == "program":
        from hermes.models.external.agent_model import ExternalAgent
        from hermes.models.external.agent_process import AgentProgram

        return ExternalAgent(found.endpoint, AgentProgram(found.argv, str(Path.cwd())))
    model: HttpModel = make_model(found.endpoint, http)
    if found.entry.kind == "local" or not found.endpoint.model:
        return LocalModel(found.endpoint, http, cache_dir, kind=found.entry.id)
    return model


def resolve(settings: Settings, asked: ModelQuery) -> Resolved:
    """Everything there is to know about the model asked for; `UserError` says what is missing."""
    claims = _claims(settings, asked)
    said = keyring.address_of(claims)
    own = keyring.own_providers(settings).get(said.provider.lower())
    if own is not None:
        return _own(settings, asked, claims, own)
    if said.provider in ("", "auto"):
        entry, base_url, source = _auto(settings, said.base_url)
    else:
        entry, base_url = _named(said.provider), said.base_url
        source = "asked for" if asked.provider else "model.provider"
    if entry.kind == "box":
        return _box(settings, asked, entry, source)
    if entry.kind == "program":
        return _program(settings, asked, entry, source)
    base_url = base_url or keyring.usual_address(settings, entry)
    target = keyring.Target(claims=claims, entry=entry, base_url=base_url)
    if entry.kind in ("oauth", "external"):
        _require_sign_in(settings, target)
    section = settings.of(model_section.Section)
    name = asked.name or (section.default if _is_configured(asked, section) else "")
    if not base_url or (not name and entry.kind != "local" and not catalogue.is_loopback(base_url)):
        raise UserError(NO_MODEL if not name else f"{entry.id!r} has no address of its own: set model.base_url")
    return _resolved(settings, asked, target, name, source)


def _claims(settings: Settings, asked: ModelQuery) -> list[keyring.Claim]:
    key = asked.api_key or (keyring.variable(settings, asked.key_env) if asked.key_env else "")
    mine = keyring.Claim(
        provider=asked.provider,
        base_url=asked.base_url,
        api_key=key,
        key_source=asked.key_env or "the key that was given",
        is_filed=asked.is_filed,
    )
    return [*keyring.configured_claims(settings), *((asked.over,) if asked.over else ()), mine]


def _refuse_no_address(base_url: str) -> None:
    """Say at once what no try can mend."""
    if not _ADDRESS.match(base_url):
        meant = f"http://{base_url}"
        hint = f"; did you mean {meant!r}?" if catalogue.is_loopback(meant) else ", such as https://api.example.org/v1"
        raise UserError(f"{base_url!r} is not an http or https address{hint}")


def _resolved(settings: Settings, asked: ModelQuery, target: keyring.Target, name: str, source: str) -> Resolved:
    """`target` with its form and its keys."""
    _refuse_no_address(target.base_url)
    entry, own = target.entry, keyring.configured_provider(settings, target.entry)
    endpoint = _endpoint(settings, asked, target, own, name)
    pool, keys = asked.pool, keyring.Keys()
    if pool is None:  # else it was handed over together with the address
        keys = keyring.keys_for(settings, target)
        strategy = settings.of(top_section.Section).credential_pool_strategies.get(entry.id, "fill_first")
        pool = keyring.auth_file(settings).pool(keys.kept, strategy)
    if pool is not None:
        endpoint = _keyed(endpoint, entry, pool.pick(), asked)
    elif keys.withheld:
        endpoint = replace(endpoint, withheld=keyring.sentence(target, keys.withheld[0]))
    return Resolved(endpoint, entry, source, pool, tuple(own.models))


def _keyed(endpoint: Endpoint, entry: catalogue.ProviderEntry, credential: Credential, asked: ModelQuery) -> Endpoint:
    if asked.pool is not None:
        credential = replace(credential, homes=(Home(address=endpoint.base_url),))
    return with_key(endpoint, credential, entry.key_header)


def _require_sign_in(settings: Settings, target: keyring.Target) -> None:
    keys = keyring.keys_for(settings, target) if target.base_url else keyring.Keys()
    if keys.kept:
        return
    if keys.withheld:
        raise UserError(f"{keyring.sentence(target, keys.withheld[0])}, or base_url beside the tokens in auth.json")
    raise UserError(
        f"{target.entry.name} signs in through a browser or another program, which this version does not do; put "
        "tokens that another program got into auth.json (docs/models.md), or choose a provider with a key: hermes model"
    )


# -- who ---------------------------------------------------------------------------------------------------------


def _named(wanted: str) -> catalogue.ProviderEntry:
    entry = catalogue.find_provider(wanted)
    if entry is None:
        from difflib import get_close_matches  # only when something is wrong

        near = get_close_matches(wanted, catalogue.providers(), n=1, cutoff=0.7)
        hint = f"; did you mean {near[0]!r}?" if near else "; see: hermes model --list"
        raise UserError(f"there is no provider {wanted!r}{hint}")
    return entry


def _auto(settings: Settings, base_url: str) -> tuple[catalogue.ProviderEntry, str, str]:
    """By address; then by the first key that is set."""
    if not base_url:
        for name in ("OPENAI_BASE_URL", "OPENROUTER_BASE_URL"):
            base_url = base_url or settings.lookup(name) or ""
    if base_url:
        return catalogue.provider_of_host(base_url) or catalogue.providers()["custom"], base_url, "by address"
    for entry in catalogue.providers().values():
        for name in entry.env:
            if settings.lookup(name):
                return entry, "", f"{name} is set"
    raise UserError(NO_MODEL)


def _is_configured(asked: ModelQuery, section: model_section.Section) -> bool:
    """Whether `model.default` belongs to the provider that is asked for."""
    return not asked.provider or asked.provider == section.provider or not section.provider


def _box(settings: Settings, asked: ModelQuery, entry: catalogue.ProviderEntry, source: str) -> Resolved:
    """A file on this machine: `endpoint.model` is its path, or empty for the one that comes with Hermes."""
    section = settings.of(model_section.Section)
    if asked.base_url:
        raise UserError(f"{entry.id!r} is a model file on this machine and has no address: leave --base-url out")
    is_configured = _is_configured(asked, section)
    return Resolved(
        Endpoint(
            base_url="",
            model=asked.name or (section.default if is_configured else ""),
            provider=entry.id,
            limits=_local_limits(settings),
            answer=settings.of(agent_section.Section).answer,
            quirks=entry.quirks,
            context_length=section.context_length if is_configured else None,
        ),
        entry,
        source,
    )


def _program(settings: Settings, asked: ModelQuery, entry: catalogue.ProviderEntry, source: str) -> Resolved:
    """Another agent, started by us: `endpoint.model` is how it is called here, its program is in the settings."""
    section = settings.of(model_section.Section)
    argv = asked.argv or ((section.acp_command, *section.acp_args) if section.acp_command else ())
    if not argv:
        raise UserError("the provider 'acp' is a program that speaks ACP: name it in model.acp_command")
    endpoint = Endpoint(
        base_url=f"acp:{argv[0]}",
        model=asked.name or section.default or Path(argv[0]).name,
        provider=entry.id,
        limits=_local_limits(settings),
        answer=settings.of(agent_section.Section).answer,
        quirks=entry.quirks,
        context_length=section.context_length,
    )
    return Resolved(endpoint, entry, source, argv=argv)


# -- in which form -----------------------------------------------------------------------------------------------


def _endpoint(
    settings: Settings, asked: ModelQuery, target: keyring.Target, own: top_section.Provider, name: str
) -> Endpoint:
    section, entry, base_url = settings.of(model_section.Section), target.entry, target.base_url
    is_configured = _is_configured(asked, section) and _is_filed(target)
    mode = _mode(asked.api_mode or own.api_mode or (section.api_mode if is_configured else ""))
    mode = mode or catalogue.api_mode_for(base_url, entry)
    facts = load_metadata(paths.cache_dir(settings.home)).find(name) if name else None
    known = own.models.get(name) if isinstance(own.models, dict) else None
    special = known or top_section.ProviderModel()
    window = special.context_length or own.context_length or (section.context_length if is_configured else None)
    listed = facts.context if facts else None
    is_local = entry.kind == "local" or (entry.kind == "any" and catalogue.is_loopback(base_url))
    stale_s = special.stale_timeout_seconds or own.stale_timeout_seconds
    limits = _local_limits(settings) if is_local else _limits(settings)
    is_bedrock = mode == "bedrock_converse"
    extra = {**(_guardrail(settings) if is_bedrock else {}), **own.extra_body, **_routing(settings, asked, entry)}
    return Endpoint(
        base_url=base_url,
        model=name,
        provider=entry.id,
        api_mode=mode,
        headers={**entry.headers, **_cache_headers(settings, entry), **_own_headers(target, own)},
        extra_body=extra,
        limits=HttpLimits(CONNECT_S, stale_s, stale_s) if stale_s else limits,
        answer=settings.of(agent_section.Section).answer,
        timeout_s=special.request_timeout_seconds or own.request_timeout_seconds,
        quirks=_quirks(settings, entry, mode, name),
        max_tokens=special.max_tokens or own.max_tokens,
        max_output=facts.output if facts else None,
        context_length=window or listed,
        asks_window=window is None and (listed is None or entry.kind in ("local", "any")),
        region=keyring.region(settings) if is_bedrock else "",
        profile=(settings.lookup("AWS_PROFILE") or "") if is_bedrock else "",
        is_aws=is_bedrock and _takes_signatures(settings, base_url),
    )


def _is_filed(target: keyring.Target) -> bool:
    """Whether the provider in force is the one that the `model` section of config.yaml is about."""
    filed, said = target.claims[0], keyring.address_of(target.claims)
    is_general = not (filed.provider or filed.base_url)
    return is_general or said.provider in ("", "auto") or keyring.is_at(said.provider, filed.provider, filed.base_url)


def _own_headers(target: keyring.Target, own: top_section.Provider) -> dict[str, str]:
    """Headers of config.yaml, which may hold keys: for the address that they stand beside."""
    home = Home(address=own.base_url) if own.base_url else Home(provider=target.entry.id)
    return own.headers if home.has(target.base_url) else {}


def _takes_signatures(settings: Settings, base_url: str) -> bool:
    """Whether AWS credentials belong to the address: one of AWS, or where its own variables send its tools."""
    named = [settings.lookup(name) for name in ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_ENDPOINT_URL")]
    homes = [Home(provider="bedrock"), *(Home(address=address) for address in named if address)]
    return any(home.has(base_url) for home in homes)


def _mode(text: str) -> ApiMode | None:
    if text and text not in get_args(ApiMode):
        raise ConfigError(f"api_mode {text!r} is not one of {', '.join(get_args(ApiMode))}")
    return text or None  # type: ignore[return-value]  # checked above


def _quirks(settings: Settings, entry: catalogue.ProviderEntry, mode: ApiMode, name: str) -> Quirks:
    quirks, lowered = entry.quirks, name.lower()
    if "claude" in lowered and mode != "codex_responses" and entry.kind not in ("any", "local"):
        from hermes.config.sections import prompt_caching  # see `region`

        ttl = settings.of(prompt_caching.Section).cache_ttl
        quirks = replace(quirks, cache_markers=True, cache_ttl=ttl)
    if mode == "anthropic_messages" and entry.id != "anthropic":
        quirks = replace(quirks, keeps_thinking=False)
    if mode == "chat_completions" and any(family in lowered for family in ("gpt-5", "codex")):
        quirks = replace(quirks, system_role="developer")
    return quirks


def _routing(settings: Settings, asked: ModelQuery, entry: catalogue.ProviderEntry) -> JsonObject:
    """The fields that tell an aggregator whom to ask. Asked of another provider they are refused."""
    if not entry.quirks.is_aggregator:
        if asked.routing:
            raise UserError(
                f"routing between providers was asked for, and {entry.name} is no aggregator; "
                "use openrouter, or leave the routing out"
            )
        return {}
    from hermes.config.sections import openrouter, provider_routing  # see `region`

    section, score = settings.of(provider_routing.Section), settings.of(openrouter.Section).min_coding_score
    given = {name: value for name, value in msgspec.to_builtins(section).items() if value}
    configured: JsonObject = {"provider": given} if given else {}
    if score is not None and entry.id == "openrouter":
        configured["plugins"] = [{"id": PARETO_ROUTER, "min_coding_score": score}]
    return {**configured, **asked.routing}


def _cache_headers(settings: Settings, entry: catalogue.ProviderEntry) -> dict[str, str]:
    if entry.id != "openrouter":
        return {}
    from hermes.config.sections import openrouter  # see `region`

    section = settings.of(openrouter.Section)
    if not section.response_cache:
        return {}
    return {"x-openrouter-cache": "true", "x-openrouter-cache-ttl": str(section.response_cache_ttl)}


def _guardrail(settings: Settings) -> JsonObject:
    from hermes.config.sections import bedrock  # see `region`

    guardrail = settings.of(bedrock.Section).guardrail
    if not guardrail.guardrail_identifier:
        return {}
    return {
        "guardrailConfig": {
            "guardrailIdentifier": guardrail.guardrail_identifier,
            "guardrailVersion": guardrail.guardrail_version or "DRAFT",
            "streamProcessingMode": guardrail.stream_processing_mode,
            "trace": guardrail.trace,
        }
    }


def _limits(settings: Settings) -> HttpLimits:
    first_s = seconds(settings, "HERMES_API_CALL_STALE_TIMEOUT", HttpLimits().first_byte_s)
    told = [seconds(settings, f"HERMES_STREAM_{name}_TIMEOUT", 0.0) for name in ("READ", "STALE")]
    return HttpLimits(CONNECT_S, first_s, min((s for s in told if s), default=HttpLimits().idle_s))


def _local_limits(settings: Settings) -> HttpLimits:
    """On this machine a large prompt may take minutes to read."""
    stale_s = settings.of(agent_section.Section).local_stream_stale_timeout
    return HttpLimits(CONNECT_S, stale_s, stale_s)


def seconds(settings: Settings, name: str, default: float) -> float:
    """What an environment variable says, or the default; `ConfigError` when it is not a positive number."""
    text = settings.lookup(name)
    if not text:
        return default
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise ConfigError(f"the variable {name} should hold seconds, not {text!r}")
    return found


# -- servers of the user's own -----------------------------------------------------------------------------------


def _own(settings: Settings, asked: ModelQuery, claims: Sequence[keyring.Claim], own: top_section.Provider) -> Resolved:
    said = keyring.address_of(claims)
    provider, base_url = said.provider.lower(), said.base_url or own.base_url
    if not base_url:
        raise ConfigError(f"providers.{provider} has no base_url")
    section = settings.of(model_section.Section)
    name = asked.name or (section.default if _is_configured(asked, section) else "") or own.model
    if not name and not catalogue.is_loopback(base_url):
        raise UserError(f"name a model of {provider!r}: set model.default, or providers.{provider}.model")
    known = catalogue.provider_of_host(base_url) or catalogue.providers()["custom"]
    entry = replace(known, id=provider, kind="any" if known.kind == "key" else known.kind, env=(), headers={})
    target = keyring.Target(claims=claims, entry=entry, base_url=base_url, is_own=True)
    return _resolved(settings, asked, target, name, f"providers.{provider}")
