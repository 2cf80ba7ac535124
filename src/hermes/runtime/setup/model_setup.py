"""The model side of an agent, put together from its keywords and the settings."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from hermes.config import paths
from hermes.config.sections import agent as agent_section
from hermes.config.sections import context as context_section
from hermes.config.sections import model as model_section
from hermes.config.sections import spending as spending_section
from hermes.config.sections import top as top_section
from hermes.config.settings import Settings
from hermes.dicts import from_dict
from hermes.errors import UserError
from hermes.models.attempts import Caps, ClientOptions, SpendGuard
from hermes.models.providers.credentials import pool_from
from hermes.models.providers.local import PROBES_FILE
from hermes.models.providers.metadata import price_list
from hermes.models.providers.resolve import PARETO_ROUTER, ModelQuery, resolve_model, seconds
from hermes.models.providers.windows import WindowMemory, Windows
from hermes.redact import Redactor
from hermes.runtime.options import AgentOptions, ModelOptions
from hermes.runtime.redaction import clean_message
from hermes.runtime.requests import build_units
from hermes.seams import HttpStream, Model, RequestOptions, Supervisor, Unit
from hermes.spend import Cap
from hermes.types import JsonObject

if TYPE_CHECKING:
    from hermes.models.account import Account
    from hermes.models.call_record import SentBytes
    from hermes.types import StatusChanged

BOX_PROVIDER, PROGRAM_PROVIDER = "local", "acp"
_NOT_OVERRIDABLE = ("messages", "input", "system", "instructions", "tools", "stream")


class StartedModel(Protocol):
    """A model that is a process of our own."""

    supervisor: Callable[[], Supervisor] | None

    async def aclose(self) -> None: ...


def model_chain(options: AgentOptions, settings: Settings, http: HttpStream) -> list[Model]:
    """The model asked for, then those that take over when it cannot answer."""
    wanted = options.model
    first = resolve_model(settings, http, _asked(wanted)) if isinstance(wanted.model, str) else wanted.model
    chain = [first]
    for entry in _fallbacks(wanted, settings):
        model = resolve_model(settings, http, entry)
        if all((model.provider, model.name, model.base_url) != (m.provider, m.name, m.base_url) for m in chain):
            chain.append(model)
    return chain


def with_plugins(options: AgentOptions, settings: Settings) -> "tuple[AgentOptions, list[StatusChanged]]":
    """The options with what plugins bring that an agent is made of: providers of its model, and its context engine."""
    if "plugins" not in settings.tree and "context" not in settings.tree:
        return options, []
    from hermes.runtime.setup.plugin_setup import prepare_agent  # for who has plugins

    return prepare_agent(options, settings)


def introduced(
    chain: Sequence[Model], supervisor: Callable[[], Supervisor], folder: str | None
) -> "tuple[StartedModel, ...]":
    """Those of `chain` that are a process of our own, told who starts it, and where. The agent closes them."""
    if all(model.provider not in (BOX_PROVIDER, PROGRAM_PROVIDER) for model in chain):
        return ()
    from hermes.models.box.model import BoxModel  # only who uses it
    from hermes.models.external.agent_model import ExternalAgent

    started = tuple(model for model in chain if isinstance(model, BoxModel | ExternalAgent))
    for model in started:
        model.supervisor = supervisor
        if folder and isinstance(model, ExternalAgent):
            model.work_in(folder)
    return started


def client_options(
    settings: Settings, memory: WindowMemory, lent: "Account | None" = None, sent: "SentBytes | None" = None
) -> ClientOptions:
    """Persistence, prices, caps, and what is known of windows."""
    retries = settings.lookup("HERMES_STREAM_RETRIES")
    if retries and not retries.isdecimal():
        raise UserError(f"the variable HERMES_STREAM_RETRIES should hold a whole number, not {retries!r}")
    prices = price_list(settings)
    return ClientOptions(
        max_attempts=settings.of(agent_section.Section).api_max_retries,
        max_retry_after_s=settings.of(agent_section.Section).max_retry_after,
        stream_retries=int(retries) if retries else None,
        timeout_s=seconds(settings, "HERMES_API_TIMEOUT", 1800.0),
        price=prices,
        price_version=prices.version,
        guard=_guard(_caps(settings.of(spending_section.Section)), lent),
        windows=Windows(
            memory, paths.cache_dir(settings.home) / PROBES_FILE, settings.of(context_section.Section).assumed_window
        ),
        sent=sent,
    )


def recorder(model: ModelOptions, http: HttpStream) -> "SentBytes | None":
    """Where an agent that keeps records notes what is sent."""
    if not model.records_calls:
        return None
    from hermes.models.call_record import SentBytes  # for who does

    return SentBytes(http)


def unrecorded(options: ClientOptions) -> ClientOptions:
    """For the calls of helpers."""
    return options if options.sent is None else msgspec.structs.replace(options, sent=None)


def prefill(model: ModelOptions, redactor: Redactor) -> tuple[Unit, ...]:
    """What every conversation of the agent begins with."""
    return tuple(build_units([clean_message(from_dict(raw), redactor) for raw in model.prefill_messages or ()]))


def request_options(options: AgentOptions, settings: Settings) -> RequestOptions:
    """What every request of the agent asks beside its words; keywords win over settings."""
    model, agent = options.model, settings.of(agent_section.Section)
    overrides = dict(model.request_overrides or {})
    for name in _NOT_OVERRIDABLE:
        if name in overrides:
            raise UserError(f"request_overrides cannot replace {name!r}: it is built from the session")
    name = model.model if isinstance(model.model, str) else model.model.name
    chosen = agent.reasoning_overrides.get(name or settings.of(model_section.Section).default) or agent.reasoning_effort
    effort: JsonObject | None = {"effort": chosen} if chosen else None
    return RequestOptions(
        max_tokens=model.max_tokens or settings.of(model_section.Section).max_tokens,
        reasoning=dict(model.reasoning_config) if model.reasoning_config is not None else effort,
        service_tier=model.service_tier or agent.service_tier or None,
        extra_body=overrides,
    )


def _asked(wanted: ModelOptions) -> ModelQuery:
    argv = _program(wanted)
    return ModelQuery(
        name=str(wanted.model),
        base_url=wanted.base_url or "",
        provider=PROGRAM_PROVIDER if argv else wanted.provider or "",
        argv=argv,
        api_key=wanted.api_key or "",
        api_mode=wanted.api_mode or "",
        pool=pool_from(wanted.credential_pool) if wanted.credential_pool else None,
        routing=_routing(wanted),
    )


def _program(wanted: ModelOptions) -> tuple[str, ...]:
    """The program of another agent that is to be the model; `command` and `args` are other names for the same."""
    program = wanted.acp_command or wanted.command
    args = wanted.acp_args if wanted.acp_command else wanted.args
    if not program:
        if wanted.acp_args or wanted.args:
            raise UserError("acp_args (or args) go with acp_command (or command), which names the program")
        return ()
    return (program, *(args or ()))


def _routing(wanted: ModelOptions) -> JsonObject:
    """The fields that tell an aggregator whom to ask."""
    chosen: JsonObject = {
        "only": _listed(wanted.providers_allowed),
        "ignore": _listed(wanted.providers_ignored),
        "order": _listed(wanted.providers_order),
        "sort": wanted.provider_sort,
        "require_parameters": wanted.provider_require_parameters or None,
        "data_collection": wanted.provider_data_collection,
    }
    provider = {name: value for name, value in chosen.items() if value}
    routing: JsonObject = {"provider": provider} if provider else {}
    if wanted.openrouter_min_coding_score is not None:
        score = wanted.openrouter_min_coding_score
        if not 0 <= score <= 1:
            raise UserError(f"openrouter_min_coding_score is between 0 and 1, not {score!r}")
        routing["plugins"] = [{"id": PARETO_ROUTER, "min_coding_score": score}]
    return routing


def _listed(names: Sequence[str] | None) -> list[str] | None:
    return [names] if isinstance(names, str) else list(names) if names else None


def _fallbacks(wanted: ModelOptions, settings: Settings) -> list[ModelQuery]:
    given = wanted.fallback_model
    if given is None:
        top = settings.of(top_section.Section)
        entries: Sequence[Any] = top.fallback_providers or ([top.fallback_model] if top.fallback_model.model else [])
    else:
        entries = [given] if isinstance(given, Mapping | str) else list(given)
    return [_fallback(entry, is_filed=given is None) for entry in entries]


def _fallback(entry: Any, *, is_filed: bool) -> ModelQuery:
    if isinstance(entry, str):
        provider, slash, model = entry.partition("/")
        entry = {"provider": provider, "model": model} if slash else {"model": entry}
    elif not isinstance(entry, Mapping):
        entry = msgspec.to_builtins(entry)
    names = {"provider": "provider", "model": "name", "base_url": "base_url", "api_key": "api_key"}
    names |= {"key_env": "key_env", "api_mode": "api_mode"}
    unknown = sorted(set(entry) - set(names))
    if unknown or not entry.get("model"):
        raise UserError(f"a fallback needs a model and takes {', '.join(names)}; this one is {dict(entry)!r}")
    words: dict[str, Any] = {names[name]: str(value or "") for name, value in entry.items()}
    return ModelQuery(**words, is_filed=is_filed)


def _guard(caps: Caps, lent: "Account | None") -> SpendGuard:
    """The guard of an agent; one whose parent lends it something has that in place of a cap of its own turn."""
    if lent is None:
        return SpendGuard(caps)
    from hermes.models.lent_guard import LentGuard  # for children

    return LentGuard(caps, lent)


def _caps(section: spending_section.Section) -> Caps:
    def cap(what: str) -> Cap:
        return Cap(**{unit: getattr(section, f"{what}_{unit}") for unit in ("usd", "tokens", "seconds")})

    return Caps(turn=cap("turn"), session=cap("session"), day=cap("day"))
