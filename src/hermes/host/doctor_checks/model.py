"""Whether the model and those that stand in for it have keys, and answer."""

from collections.abc import Iterable, Sequence

from hermes.config.load import load_settings
from hermes.config.sections import model
from hermes.config.sections import top as top_section
from hermes.config.settings import Settings
from hermes.errors import ConfigError, HermesError, ProviderError
from hermes.host.doctor import Check, Finding, ok, problem, settled, warning
from hermes.host.installation import Installation
from hermes.models.endpoint import Endpoint
from hermes.models.http.client import HttpClient
from hermes.models.providers.catalogue import is_loopback, providers
from hermes.models.providers.endpoint_check import CheckResult, check_endpoint, require_model
from hermes.models.providers.resolve import ModelQuery, Resolved, resolve


def run(installation: Installation) -> Iterable[Finding]:
    try:
        settings = load_settings(installation.home, environ=installation.environ)
        section = settings.of(model.Section)
    except ConfigError as error:
        yield problem(str(error), "hermes config edit")
        return
    keys = _keys(settings)
    if not section.default and not section.base_url and not section.provider:
        known = f"; there are keys for {', '.join(keys)}" if keys else ""
        yield problem(f"no model is configured{known}", "hermes model")
        return
    yield from _endpoint(installation, settings, ModelQuery(), "")
    for entry in settings.of(top_section.Section).fallback_providers:
        asked = ModelQuery(
            name=entry.model,
            provider=entry.provider,
            base_url=entry.base_url,
            api_key=entry.api_key,
            key_env=entry.key_env,
            api_mode=entry.api_mode,
            is_filed=True,
        )
        yield from _endpoint(installation, settings, asked, "fallback: ")
    if keys:
        yield ok(f"keys are set for {', '.join(keys)}")


def _endpoint(installation: Installation, settings: Settings, asked: ModelQuery, what: str) -> Iterable[Finding]:
    mend = "hermes fallback" if what else "hermes model"
    try:
        found = resolve(settings, asked)
    except HermesError as error:
        yield problem(f"{what}{error}", mend)
        return
    endpoint = found.endpoint
    shown = f"{what}{endpoint.model or 'the loaded model'} at {endpoint.base_url or endpoint.provider}"
    if found.entry.kind == "box":
        yield ok(f"{what}{endpoint.model or 'the model in the box'}, on this machine")
        return
    entry = found.entry
    if entry.kind == "key" and not is_loopback(endpoint.base_url) and not (endpoint.api_key or entry.key_header):
        variable = entry.env[0] if entry.env else "SOME_API_KEY"
        where = f" (a key is made at {entry.signup})" if entry.signup else ""
        found_elsewhere = f"; {endpoint.withheld}" if endpoint.withheld else ""
        why = f"{shown}: {entry.name} needs a key{where}{found_elsewhere}"
        yield problem(why, f"hermes config set {variable} VALUE")
        return
    if not is_loopback(endpoint.base_url) and not installation.may_go_online:
        yield ok(f"{shown} (not asked; hermes doctor --online asks it)")
        return
    yield _asked(found, shown, mend)


def _asked(found: Resolved, shown: str, mend: str) -> Finding:
    try:
        result = settled(lambda: _ask(found.endpoint))
        if found.endpoint.model:
            require_model(result, found.endpoint.model)
    except ProviderError as error:
        return problem(f"{shown}: {error}", mend)
    if not result.is_checked:
        return warning(f"{shown}: it has no list of models, so only a turn can tell")
    return ok(f"{shown} answers")


async def _ask(endpoint: Endpoint) -> CheckResult:
    http = HttpClient()
    try:
        return await check_endpoint(http, endpoint)
    finally:
        await http.close()


def _keys(settings: Settings) -> Sequence[str]:
    return [entry.name for entry in providers().values() if any(settings.lookup(name) for name in entry.env)]


CHECK = Check(title="Model", run=run)
