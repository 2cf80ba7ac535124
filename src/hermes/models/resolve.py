"""Which model a name, an address and the settings mean."""

from collections.abc import Mapping, Sequence
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
from hermes.models.catalogue import ProviderEntry, api_mode_for, find_provider, is_loopback, provider_of_host, providers
from hermes.models.credentials import AuthFile, Credential, CredentialPool
from hermes.models.endpoint import ApiMode, Endpoint, Quirks
from hermes.models.local import LocalModel
from hermes.models.metadata import load_metadata
from hermes.models.pooled import PooledModel
from hermes.models.renewal import renewer
from hermes.models.transport import HttpModel
from hermes.models.wire_modes import make_model
from hermes.seams import HttpLimits, HttpStream, Model
from hermes.types import JsonObject

NO_MODEL = (
    "no model is configured: run hermes model, or give --model and --base-url, "
    "or set model.default in config.yaml (hermes config set model.default NAME)"
)
CONNECT_S = 30.0
PARETO_ROUTER = "pareto-router"  # of OpenRouter: chooses among models that are good at code


class Asked(Struct, frozen=True, kw_only=True):
    """What a caller asks for; what is given here wins over what is configured."""

    name: str = ""
    base_url: str = ""
    provider: str = ""
    api_key: str = ""
    key_env: str = ""
    api_mode: str = ""
    pool: CredentialPool | None = None
    routing: JsonObject = field(default_factory=dict)  # for aggregators


class Resolved(Struct, frozen=True):
    """An endpoint, the keys for it, and where the decision came from."""

    endpoint: Endpoint
    entry: ProviderEntry
    source: str
    pool: CredentialPool | None = None
    models: tuple[str, ...] = ()  # those that config.yaml names, for a provider that tells none


def resolve_model(settings: Settings, http: HttpStream, asked: Asked | None = None) -> Model:
    """The model to call."""
    found = resolve(settings, asked or Asked())
    pool = found.pool
    if pool is not None and (len(pool) > 1 or pool.is_renewable):
        renew = renewer(http, _auth(settings), found.entry.id) if pool.is_renewable else None
        return PooledModel(pool, lambda one: make_model(_with_key(found.endpoint, found.entry, one.key), http), renew)
    return wrapped(found, http, paths.cache_dir(settings.home), settings.environ)


def wrapped(found: Resolved, http: HttpStream, cache_dir: Any, environ: Mapping[str, str] | None = None) -> Model:
    """The model of `found`; one on this machine is asked what it is before its first call."""
    if found.entry.kind == "box":
        from hermes.models.box.model import BoxModel  # noqa: PLC0415 - only who uses it

        return BoxModel(found.endpoint, http, paths.root_home(environ))
    model: HttpModel = make_model(found.endpoint, http)
    if found.entry.kind == "local" or not found.endpoint.model:
        return LocalModel(found.endpoint, http, cache_dir, kind=found.entry.id)
    return model


def resolve(settings: Settings, asked: Asked) -> Resolved:
    """Everything there is to know about the model asked for; `UserError` says what is missing."""
    section = settings.of(model_section.Section)
    wanted = asked.provider or ("" if asked.base_url else section.provider)
    own = _own_providers(settings)
    if wanted.lower() in own:
        return _own(settings, asked, section, own[wanted.lower()])
    base_url = asked.base_url or (section.base_url if not asked.provider or asked.provider == section.provider else "")
    if wanted in ("", "auto"):
        entry, base_url, source = _auto(settings, base_url)
    else:
        entry, source = _named(wanted), "asked for" if asked.provider else "model.provider"
    if entry.kind == "box":
        return _box(settings, asked, entry, source)
    base_url = base_url or _base_url(settings, entry)
    if entry.kind in ("oauth", "external") and (not base_url or _pool(settings, entry, ()) is None):
        raise UserError(
            f"{entry.name} signs in through a browser or another program, which this version does not do; put tokens "
            "that another program got into auth.json (docs/models.md), or choose a provider with a key: hermes model"
        )
    name = asked.name or (section.default if _is_configured(asked, section) else "")
    if not base_url or (not name and entry.kind != "local" and not is_loopback(base_url)):
        raise UserError(NO_MODEL if not name else f"{entry.id!r} has no address of its own: set model.base_url")
    keys = _keys(settings, asked, section, entry, base_url)
    own_entry = settings.of(top_section.Section).providers.get(entry.id) or top_section.Provider()
    endpoint = _endpoint(settings, asked, entry, own_entry, base_url, name)
    pool = asked.pool or _pool(settings, entry, keys)
    first = pool.pick().key if pool is not None else ""
    return Resolved(_with_key(endpoint, entry, first), entry, source, pool, tuple(own_entry.models))


# -- who ---------------------------------------------------------------------------------------------------------


def _named(wanted: str) -> ProviderEntry:
    entry = find_provider(wanted)
    if entry is None:
        from difflib import get_close_matches  # noqa: PLC0415 - only when something is wrong

        near = get_close_matches(wanted, providers(), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "; see: hermes model --list"
        raise UserError(f"there is no provider {wanted!r}{hint}")
    return entry


def _auto(settings: Settings, base_url: str) -> tuple[ProviderEntry, str, str]:
    """By address; then by the first key that is set."""
    if not base_url:
        for variable in ("OPENAI_BASE_URL", "OPENROUTER_BASE_URL"):
            base_url = base_url or settings.lookup(variable) or ""
    if base_url:
        return provider_of_host(base_url) or providers()["custom"], base_url, "by address"
    for entry in providers().values():
        for variable in entry.env:
            if settings.lookup(variable):
                return entry, "", f"{variable} is set"
    raise UserError(NO_MODEL)


def _is_configured(asked: Asked, section: model_section.Section) -> bool:
    """Whether `model.default` belongs to the provider that is asked for."""
    return not asked.provider or asked.provider == section.provider or not section.provider


def _box(settings: Settings, asked: Asked, entry: ProviderEntry, source: str) -> Resolved:
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


def _base_url(settings: Settings, entry: ProviderEntry) -> str:
    own = settings.of(top_section.Section).providers.get(entry.id)
    if own is not None and own.base_url:
        return own.base_url
    if entry.base_url_env and (set_by := settings.lookup(entry.base_url_env)):
        return set_by
    if entry.kind == "aws":
        from hermes.models.bedrock_converse import bedrock_url  # noqa: PLC0415 - only who uses it

        return bedrock_url(_region(settings))
    return entry.base_url or (_auth(settings).address(entry.id) if entry.kind == "oauth" else "")


def _region(settings: Settings) -> str:
    from hermes.config.sections import bedrock  # noqa: PLC0415 - a start pays for its own provider alone

    section = settings.of(bedrock.Section)
    return section.region or settings.lookup("AWS_REGION") or settings.lookup("AWS_DEFAULT_REGION") or ""


# -- with which key ----------------------------------------------------------------------------------------------


def _keys(
    settings: Settings, asked: Asked, section: model_section.Section, entry: ProviderEntry, base_url: str
) -> list[Credential]:
    """Keys in the order they are tried. A key is only sent where it belongs."""
    if asked.api_key or asked.key_env:
        return [Credential(asked.api_key or _variable(settings, asked.key_env))]
    if (
        section.api_key
        and (not asked.base_url or asked.base_url == section.base_url)
        and _is_configured(asked, section)
    ):
        return [Credential(section.api_key)]
    own = settings.of(top_section.Section).providers.get(entry.id)
    if own is not None and (own.api_key or own.key_env):
        return [Credential(own.api_key or _variable(settings, own.key_env))]
    variables: Sequence[str] = entry.env
    if entry.kind == "any":
        variables = ("OPENAI_API_KEY",)
    elif provider_of_host(base_url) not in (entry, None):
        return []  # the address of somebody else
    return [Credential(key) for variable in variables if (key := settings.lookup(variable))]


def _variable(settings: Settings, name: str) -> str:
    found = settings.lookup(name)
    if not found:
        raise ConfigError(f"the variable {name}, which should hold a key, is not set")
    return found


def _pool(settings: Settings, entry: ProviderEntry, keys: Sequence[Credential]) -> CredentialPool | None:
    strategy = settings.of(top_section.Section).credential_pool_strategies.get(entry.id, "fill_first")
    return _auth(settings).pool(entry.id, keys, strategy)


def _auth(settings: Settings) -> AuthFile:
    return AuthFile(settings.home / "auth.json")


def _with_key(endpoint: Endpoint, entry: ProviderEntry, key: str) -> Endpoint:
    if entry.key_header and key:
        return replace(endpoint, headers={**endpoint.headers, entry.key_header: key})
    return replace(endpoint, api_key=key)


# -- in which form -----------------------------------------------------------------------------------------------


def _endpoint(
    settings: Settings, asked: Asked, entry: ProviderEntry, own: top_section.Provider, base_url: str, name: str
) -> Endpoint:
    section = settings.of(model_section.Section)
    is_configured = _is_configured(asked, section)
    mode = _mode(asked.api_mode or own.api_mode or (section.api_mode if is_configured else ""))
    mode = mode or api_mode_for(base_url, entry)
    facts = load_metadata(paths.cache_dir(settings.home)).find(name) if name else None
    known = own.models.get(name) if isinstance(own.models, dict) else None
    special = known or top_section.ProviderModel()
    window = special.context_length or own.context_length or (section.context_length if is_configured else None)
    listed = facts.context if facts else None
    is_local = entry.kind == "local" or (entry.kind == "any" and is_loopback(base_url))
    stale_s = special.stale_timeout_seconds or own.stale_timeout_seconds
    limits = _local_limits(settings) if is_local else _limits(settings)
    is_bedrock = mode == "bedrock_converse"
    extra = {**(_guardrail(settings) if is_bedrock else {}), **own.extra_body, **_routing(settings, asked, entry)}
    return Endpoint(
        base_url=base_url,
        model=name,
        provider=entry.id,
        api_mode=mode,
        headers={**entry.headers, **_cache_headers(settings, entry), **own.headers},
        extra_body=extra,
        limits=HttpLimits(CONNECT_S, stale_s, stale_s) if stale_s else limits,
        answer=settings.of(agent_section.Section).answer,
        timeout_s=special.request_timeout_seconds or own.request_timeout_seconds,
        quirks=_quirks(settings, entry, mode, name),
        max_tokens=special.max_tokens or own.max_tokens,
        max_output=facts.output if facts else None,
        context_length=window or listed,
        asks_window=window is None and (listed is None or entry.kind in ("local", "any")),
        region=_region(settings) if is_bedrock else "",
        profile=(settings.lookup("AWS_PROFILE") or "") if is_bedrock else "",
    )


def _mode(text: str) -> ApiMode | None:
    if text and text not in get_args(ApiMode):
        raise ConfigError(f"api_mode {text!r} is not one of {', '.join(get_args(ApiMode))}")
    return text or None  # type: ignore[return-value]  # checked above


def _quirks(settings: Settings, entry: ProviderEntry, mode: ApiMode, name: str) -> Quirks:
    quirks, lowered = entry.quirks, name.lower()
    if "claude" in lowered and mode != "codex_responses" and entry.kind not in ("any", "local"):
        from hermes.config.sections import prompt_caching  # noqa: PLC0415 - see `_region`

        ttl = settings.of(prompt_caching.Section).cache_ttl
        quirks = replace(quirks, cache_markers=True, cache_ttl=ttl)
    if mode == "anthropic_messages" and entry.id != "anthropic":
        quirks = replace(quirks, keeps_thinking=False)
    if mode == "chat_completions" and any(family in lowered for family in ("gpt-5", "codex")):
        quirks = replace(quirks, system_role="developer")
    return quirks


def _routing(settings: Settings, asked: Asked, entry: ProviderEntry) -> JsonObject:
    """The fields that tell an aggregator whom to ask. Asked of another provider they are refused."""
    if not entry.quirks.is_aggregator:
        if asked.routing:
            raise UserError(
                f"routing between providers was asked for, and {entry.name} is no aggregator; "
                "use openrouter, or leave the routing out"
            )
        return {}
    from hermes.config.sections import openrouter, provider_routing  # noqa: PLC0415 - see `_region`

    section, score = settings.of(provider_routing.Section), settings.of(openrouter.Section).min_coding_score
    given = {name: value for name, value in msgspec.to_builtins(section).items() if value}
    configured: JsonObject = {"provider": given} if given else {}
    if score is not None and entry.id == "openrouter":
        configured["plugins"] = [{"id": PARETO_ROUTER, "min_coding_score": score}]
    return {**configured, **asked.routing}


def _cache_headers(settings: Settings, entry: ProviderEntry) -> dict[str, str]:
    if entry.id != "openrouter":
        return {}
    from hermes.config.sections import openrouter  # noqa: PLC0415 - see `_region`

    section = settings.of(openrouter.Section)
    if not section.response_cache:
        return {}
    return {"x-openrouter-cache": "true", "x-openrouter-cache-ttl": str(section.response_cache_ttl)}


def _guardrail(settings: Settings) -> JsonObject:
    from hermes.config.sections import bedrock  # noqa: PLC0415 - see `_region`

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


def seconds(settings: Settings, variable: str, default: float) -> float:
    """What an environment variable says, or the default; `ConfigError` when it is not a positive number."""
    text = settings.lookup(variable)
    if not text:
        return default
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise ConfigError(f"the variable {variable} should hold seconds, not {text!r}")
    return found


# -- servers of the user's own -----------------------------------------------------------------------------------


def _own_providers(settings: Settings) -> dict[str, top_section.Provider]:
    """Those that are not in the catalogue, or stand in for one of it with an address of their own."""
    top = settings.of(top_section.Section)
    named = {name.lower(): entry for name, entry in top.providers.items() if find_provider(name) is None}
    return {entry.name.lower(): entry for entry in top.custom_providers if entry.name} | named


def _own(settings: Settings, asked: Asked, section: model_section.Section, own: top_section.Provider) -> Resolved:
    provider = (asked.provider or section.provider).lower()
    base_url = asked.base_url or own.base_url
    if not base_url:
        raise ConfigError(f"providers.{provider} has no base_url")
    name = asked.name or (section.default if _is_configured(asked, section) else "") or own.model
    if not name and not is_loopback(base_url):
        raise UserError(f"name a model of {provider!r}: set model.default, or providers.{provider}.model")
    known = provider_of_host(base_url) or providers()["custom"]
    entry = replace(known, id=provider, kind="any" if known.kind == "key" else known.kind, env=(), headers={})
    key = asked.api_key or own.api_key or (_variable(settings, own.key_env) if own.key_env else "")
    endpoint = _endpoint(settings, asked, entry, own, base_url, name)
    pool = asked.pool or _pool(settings, entry, [Credential(key)] if key else [])
    first = pool.pick().key if pool else key
    return Resolved(_with_key(endpoint, entry, first), entry, f"providers.{provider}", pool, tuple(own.models))
