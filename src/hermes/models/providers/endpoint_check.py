"""Try an endpoint before it is used: does its server answer, is the key right, which models does it have."""

from typing import Any

from msgspec import Struct

from hermes.errors import ProviderError
from hermes.models.endpoint import Endpoint
from hermes.models.http.errors import HttpError, HttpStatusError
from hermes.models.providers.catalogue import is_loopback
from hermes.models.providers.server_facts import JsonHttp, look
from hermes.models.wires.answer_values import listing, mapping, words
from hermes.models.wires.anthropic_messages import API_VERSION
from hermes.models.wires.classify import refusal

TIMEOUT_S = 15.0


class CheckResult(Struct, frozen=True):
    """What came of it. `models` is empty where the provider lists none; `server` names a known local one."""

    models: tuple[str, ...] = ()
    server: str = ""
    is_checked: bool = True  # False: this provider has no way to ask without paying


async def check_endpoint(http: JsonHttp, endpoint: Endpoint) -> CheckResult:
    """Ask for the list of models. `ProviderError` says what is wrong: no server, a bad key, an empty account."""
    if endpoint.api_mode == "bedrock_converse":
        return CheckResult(is_checked=False)
    if is_loopback(endpoint.base_url) and endpoint.api_mode == "chat_completions":
        facts = await look(http, endpoint.base_url, _headers(endpoint), endpoint.withheld)
        return CheckResult(facts.models, facts.server)
    base = endpoint.base_url.rstrip("/")
    url = (
        f"{base}/v1/models"
        if endpoint.api_mode == "anthropic_messages" and not base.endswith("/v1")
        else f"{base}/models"
    )
    try:
        listed = await http.get_json(url, _headers(endpoint), TIMEOUT_S)
    except HttpStatusError as error:
        if error.status in (404, 405):
            return CheckResult(is_checked=False)  # no such list here; the first turn will tell
        raise refusal(error, endpoint) from error
    except HttpError as error:
        raise refusal(error, endpoint) from error
    return CheckResult(_names(listed))


def require_model(result: CheckResult, name: str) -> None:
    """`ProviderError` with the nearest name when the provider lists models and this one is not among them."""
    if not result.models or name in result.models:
        return
    from difflib import get_close_matches  # only when something is wrong

    near = get_close_matches(name, result.models, n=3, cutoff=0.4)
    hint = f"; near it: {', '.join(near)}" if near else ""
    raise ProviderError(f"the provider has no model {name!r}{hint}", reason="model_not_found")


def _headers(endpoint: Endpoint) -> dict[str, str]:
    headers = dict(endpoint.headers)
    if endpoint.api_mode == "anthropic_messages":
        headers |= {"anthropic-version": API_VERSION, "x-api-key": endpoint.api_key}
    elif endpoint.api_key:
        headers["authorization"] = f"Bearer {endpoint.api_key}"
    return headers


def _names(listed: Any) -> tuple[str, ...]:
    told = mapping(listed)
    entries = map(mapping, listing(told.get("data", told.get("models", listed))))
    found = [words(one.get("id")) or words(one.get("name")) for one in entries]
    return tuple(name.removeprefix("models/") for name in found if name)
