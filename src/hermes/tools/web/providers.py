"""Search services as data, in services.json: what each is asked, and where in its answer the results are."""

import logging
from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import msgspec
from msgspec import Struct, field

from hermes.errors import ToolError
from hermes.typed import from_json
from hermes.types import JsonObject

Found = dict[str, Any]
log = logging.getLogger(__name__)


class SearchService(Struct, frozen=True, kw_only=True):
    """One service. `{query}`, `{limit}` and `{key}` in its texts are filled in for a request."""

    name: str
    base: str = ""  # where it is unless the settings say otherwise
    path: str = ""
    method: Literal["GET", "POST"] = "POST"
    headers: dict[str, str] = field(default_factory=dict)
    body: JsonObject = field(default_factory=dict)
    results: str = "results"  # dotted path to the list
    title: str = "title"
    link: str = "url"
    description: tuple[str, ...] = ("description",)  # the first of these that is there
    most: int = 100  # results it gives at once
    key: str = ""  # the key of the `web` settings with its secret
    where: str = ""  # the key of the `web` settings with its address
    package: str = ""  # asked in process rather than over HTTP
    page: JsonObject = field(default_factory=dict)  # what differs where it reads a page; `{query}` is the address


_ALIASES = {"brave-free": "brave", "brave-search": "brave", "duckduckgo": "ddgs"}
_VARIABLES = {
    "firecrawl_api_key": "FIRECRAWL_API_KEY",
    "parallel_api_key": "PARALLEL_API_KEY",
    "tavily_api_key": "TAVILY_API_KEY",
    "exa_api_key": "EXA_API_KEY",
    "searxng_url": "SEARXNG_URL",
    "brave_api_key": "BRAVE_SEARCH_API_KEY",
}


SEARCHES: dict[str, Callable[[], Any]] = {}  # a cache: services that plugins bring, made when they are asked
BY_PLUGIN = "(plugin)"  # in place of a package


@cache
def known_services() -> tuple[SearchService, ...]:
    """In the order in which they are tried."""
    return tuple(from_json(Path(__file__).with_name("services.json").read_bytes(), list[SearchService]))


class ServiceCall(Struct, frozen=True, kw_only=True):
    """A request ready to be sent."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes


def choose(web: Mapping[str, Any]) -> SearchService:
    """The service that the settings ask for, else the first that is available; `ToolError` says what is missing."""
    known = {provider.name: provider for provider in offered(web)}
    known |= {name: SearchService(name=name, package=BY_PLUGIN) for name in SEARCHES}
    asked = str(web.get("search_backend") or web.get("backend") or "").strip().lower()
    if asked:
        provider = known.get(_ALIASES.get(asked, asked))
        if provider is None:
            raise ToolError(f"there is no search service {asked!r}; the user can set one of {', '.join(known)}")
        lacking = missing(provider, web)
        if lacking:
            raise ToolError(f"the search service {provider.name!r} cannot be used: {lacking}")
        return provider
    for provider in known.values():
        if not missing(provider, web):
            return provider
    raise ToolError("no search service is set up; the user can give a key for one, such as TAVILY_API_KEY")


def offered(web: Mapping[str, Any]) -> tuple[SearchService, ...]:
    """Every service there is, the user's own first, in the order they are tried."""
    own = web.get("custom") or {}
    if not own.get("url"):
        return (*known_services(), SearchService(name="custom"))
    custom = SearchService(
        name="custom",
        base=str(own["url"]),
        method="POST" if own.get("method") == "POST" else "GET",
        headers={str(name).lower(): _braces(value) for name, value in (own.get("headers") or {}).items()},
        body=dict(own.get("body") or {}),
        results=str(own.get("results") or "results"),
        title=str(own.get("title") or "title"),
        link=str(own.get("link") or "url"),
        description=(str(own.get("description") or "description"),),
    )
    return (custom, *known_services())


def missing(provider: SearchService, web: Mapping[str, Any]) -> str:
    """What the service lacks, in one clause; empty when it can be asked."""
    if provider.package == BY_PLUGIN:
        return "" if SEARCHES[provider.name]().is_available() else "its plugin says that something is missing"
    if provider.package:
        lacks = find_spec(provider.package) is None
        return f"the Python package {provider.package!r} is not installed" if lacks else ""
    if provider.where and web.get(provider.where):
        return ""  # one of the user's own, which may need no key
    if not provider.key and provider.where:
        return f"{_VARIABLES.get(provider.where, provider.where)} is not set"
    if provider.key and not web.get(provider.key):
        return f"{_VARIABLES[provider.key]} is not set"
    return "" if provider.base else "web.custom.url is not set"


def is_available() -> bool:
    """True when a search service can be asked with the settings of this home; `ToolError` says what is missing."""
    from hermes.config.load import load_settings  # only to answer this
    from hermes.config.sections import web as web_section
    from hermes.config.values import plain

    web = plain(load_settings().of(web_section.Section))
    choose(web)
    return True


def request_of(provider: SearchService, web: Mapping[str, Any], query: str, limit: int) -> ServiceCall:
    """The request for one search."""
    endpoints = web.get("endpoints") or {}
    base = endpoints.get(provider.name) or (web.get(provider.where) if provider.where else "") or provider.base
    secret = str(web.get(provider.key) or "") if provider.key else ""
    if secret and not _belongs(provider, str(base)):
        log.warning(
            "the key of %s is not sent to %s, which was not set beside it; write web.%s into config.yaml, too",
            *(provider.name, base, provider.key),
        )
        secret = ""
    limit = min(limit, provider.most)
    address = str(base).rstrip("/") + provider.path if provider.path else str(base)
    url = address.replace("{query}", quote(query, safe="")).replace("{limit}", str(limit))
    headers = {name: value.replace("{key}", secret) for name, value in provider.headers.items()}
    if not secret:
        headers = {name: value for name, value in headers.items() if "{key}" not in provider.headers[name]}
    body = b""
    if provider.method == "POST":
        body = msgspec.json.encode(_filled(provider.body, query, limit))
        headers["content-type"] = "application/json"
    return ServiceCall(method=provider.method, url=url, headers={"accept": "application/json", **headers}, body=body)


def _belongs(provider: SearchService, base: str) -> bool:
    """Whether the key is for this address: the service's own, or one that stands where the key does."""
    if not provider.base or base == provider.base:
        return True
    from hermes.config.load import load_settings  # for who has an address of their own
    from hermes.config.sections.web import Section

    beside = next((layer for layer in reversed(load_settings().layers(Section)) if layer.get(provider.key)), None)
    if beside is None:
        return True  # the settings were handed over whole, by a program
    return bool(beside.get(provider.where) or (beside.get("endpoints") or {}).get(provider.name))


def results_of(provider: SearchService, answer: Any, limit: int) -> list[Found]:
    """The results in the contract's shape; `ToolError` when the answer is not the service's."""
    rows = value_at(answer, provider.results)
    if rows is None and isinstance(answer, Mapping):
        rows = []  # services leave the list out when nothing was found
    if not isinstance(rows, list):
        raise ToolError(f"the answer of {provider.name} has no list at {provider.results!r}")
    found: list[Found] = []
    for row in rows:
        link = text_at(row, provider.link)
        if not link:
            continue
        words = next((text for name in provider.description if (text := text_at(row, name))), "")
        found.append(
            {
                "title": text_at(row, provider.title) or link,
                "url": link,
                "description": words,
                "position": len(found) + 1,
            }
        )
        if len(found) == limit:
            break
    return found


def value_at(value: Any, path: str) -> Any:
    """What stands at a dotted path; None when nothing does."""
    for part in path.split(".") if path else ():
        if not isinstance(value, Mapping):
            return None
        value = value.get(part)
    return value


def text_at(value: Any, path: str) -> str:
    """The text at a dotted path; several in a list are joined, anything else is empty."""
    found = value_at(value, path)
    if isinstance(found, list):
        return " … ".join(str(each) for each in found if isinstance(each, str))
    return found.strip() if isinstance(found, str) else ""


def _filled(value: Any, query: str, limit: int) -> Any:
    if value == "{limit}":
        return limit
    if isinstance(value, str):
        return value.replace("{query}", query).replace("{limit}", str(limit))
    if isinstance(value, Mapping):
        return {name: _filled(each, query, limit) for name, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, query, limit) for each in value]
    return value


def _braces(value: object) -> str:
    """A header of the user's own is sent as it stands; only our own texts have a place for a key."""
    return str(value).replace("{key}", "")
