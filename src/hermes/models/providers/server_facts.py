"""What a server tells about itself: which models it has, and how much each can read at once."""

import logging
import re
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from hermes.models.endpoint import Endpoint
from hermes.models.http.errors import HttpError
from hermes.models.providers.catalogue import provider_of_host
from hermes.models.wires.answer_values import any_json, listing, mapping, words
from hermes.models.wires.classify import refusal
from hermes.scope import TurnScope
from hermes.seams import HttpLimits, HttpStream

PAGE_S = 5.0  # for one page
_log = logging.getLogger(__name__)


class JsonHttp(HttpStream, Protocol):
    """The byte seam, with a way to ask a server what it is."""

    async def get_json(self, url: str, headers: Mapping[str, str], timeout_s: float) -> Any: ...


class ServerFacts(Struct, frozen=True, omit_defaults=True):
    """What a server told about itself."""

    models: tuple[str, ...] = ()
    server: str = ""  # lmstudio, ollama, llamacpp, vllm, or empty
    windows: dict[str, int] = {}
    unloaded: frozenset[str] = frozenset()  # models whose window is known for certain once they are loaded

    def window(self, model: str) -> int | None:
        """The window of `model`; a server with a single one serves that under any name."""
        return self.windows.get(self.models[0] if len(self.models) == 1 and model not in self.windows else model)


def auth_headers(endpoint: Endpoint) -> dict[str, str]:
    """What a question to the server carries beside its address: as much as a request does."""
    key = {"authorization": f"Bearer {endpoint.api_key}"} if endpoint.api_key else {}
    return {**endpoint.headers, **key}


async def look(
    http: JsonHttp, base_url: str, headers: Mapping[str, str], model: str = "", withheld: str = ""
) -> ServerFacts:
    """Ask the server at `base_url` for its models and their windows; `ProviderError` when it does not answer.

    A list that tells windows is all that is read. Else the pages of the servers that people run at home are tried,
    on the same host; `model` is the one whose window matters, `withheld` says which key was kept from the server.
    """
    try:
        listed = await http.get_json(f"{base_url.rstrip('/')}/models", headers, PAGE_S)
    except HttpError as error:
        asked = Endpoint(base_url=base_url, model=base_url, provider="", withheld=withheld)
        raise refusal(error, asked) from error
    entries = listing(listed.get("data") if isinstance(listed, Mapping) else listed)
    entries = [one for one in map(mapping, entries) if words(one.get("id"))]
    models = tuple(one["id"] for one in entries)
    windows = {one["id"]: size for one in entries if (size := _told_size(one)) is not None}
    owners = {words(one.get("owned_by")).lower() for one in entries}
    facts = ServerFacts(models, next((name for owner, name in _OWNERS.items() if owner in owners), ""), windows)
    if (windows and not facts.server) or provider_of_host(base_url) is not None:
        return facts
    return await _look_closer(http, _root(base_url), headers, facts, model)


_OWNERS = {"vllm": "vllm", "llamacpp": "llamacpp", "library": "ollama", "organization_owner": "lmstudio"}
_WINDOW_PATHS = {"lmstudio": "/api/v0/models", "ollama": "/api/ps", "llamacpp": "/props"}
# As servers and aggregators spell it, the most telling first: what is loaded, then what could be.
_SIZE_FIELDS = (
    "loaded_context_length",
    "max_model_len",
    "n_ctx",
    "context_length",
    "context_window",
    "max_context_length",
    "max_context_tokens",
    "max_input_tokens",
)
_SIZE_PLACES = ("meta", "top_provider", "limits", "model_info", "default_generation_settings")
_MIN_SIZE, _MAX_SIZE = 128, 1 << 31  # of a window; anything else is a mistake, or means that there is no limit
_NUM_CTX = re.compile(r"(?m)^\s*num_ctx\s+(\d{1,12})\s*$")


def _told_size(entry: Mapping[str, Any]) -> int | None:
    """The window in an entry, wherever a server puts it."""
    inner = (entry.get(name) for name in _SIZE_PLACES)
    for place in (entry, *(one for one in inner if isinstance(one, Mapping))):
        for name in _SIZE_FIELDS:
            if (size := _size(place.get(name))) is not None:
                return size
    return None


def _size(told: Any) -> int | None:
    return told if type(told) is int and _MIN_SIZE <= told <= _MAX_SIZE else None


async def _look_closer(
    http: JsonHttp, root: str, headers: Mapping[str, str], facts: ServerFacts, model: str
) -> ServerFacts:
    """`facts` with what the pages of known servers add."""
    windows, server, models, unloaded = dict(facts.windows), facts.server, facts.models, frozenset[str]()
    loaded: dict[str, int] = {}
    for kind, path in _WINDOW_PATHS.items():
        if server not in ("", kind):
            continue
        page = await _page(http, f"{root}{path}", headers)
        if server == "" and _is_page_of(kind, page):
            server = kind
        if server == kind:
            loaded = _loaded(kind, page, models)
            windows |= loaded
    if server in ("lmstudio", "ollama"):
        names = tuple(name for name in models if name in loaded)
        wanted = model or (models[0] if len(models) == 1 else "")
        if wanted and wanted not in loaded:
            unloaded = frozenset({wanted})
            if server == "ollama" and (size := await _shown(http, root, headers, wanted)) is not None:
                windows[wanted] = size
        models = names or models
    return ServerFacts(models, server, windows, unloaded)


async def _page(http: JsonHttp, url: str, headers: Mapping[str, str]) -> Mapping[str, Any]:
    try:
        told = await http.get_json(url, headers, PAGE_S)
    except HttpError as error:
        _log.debug("%s tells no windows: %s", url, error)
        return {}
    return mapping(told)


def _is_page_of(kind: str, page: Mapping[str, Any]) -> bool:
    """Whether an unknown server answered as this kind does; some answer every path with their list of models."""
    if kind == "llamacpp":
        return _told_size(page) is not None
    if kind == "ollama":
        return isinstance(page.get("models"), list)
    listed = page.get("data")
    return isinstance(listed, list) and any(isinstance(one, Mapping) and "state" in one for one in listed)


def _loaded(kind: str, page: Mapping[str, Any], models: tuple[str, ...]) -> dict[str, int]:
    """Windows of loaded models by name, in the way each server tells them."""
    if kind == "llamacpp":
        size = _told_size(page)
        return dict.fromkeys(models, size) if size is not None else {}
    listed, name_field, size_field = (
        (page.get("data"), "id", "loaded_context_length")
        if kind == "lmstudio"
        else (page.get("models"), "name", "context_length")
    )
    found: dict[str, int] = {}
    for one in map(mapping, listing(listed)):
        if (size := _size(one.get(size_field))) is not None:
            name = words(one.get(name_field))
            found |= dict.fromkeys((name, name.removesuffix(":latest")), size)
    return found


async def _shown(http: JsonHttp, root: str, headers: Mapping[str, str], model: str) -> int | None:
    """What Ollama says of a model that it has not loaded: as its file sets it, else what the model could read."""
    limits = HttpLimits(PAGE_S, PAGE_S, PAGE_S)
    sent = {**headers, "content-type": "application/json"}
    try:
        chunks = http.post_stream(
            f"{root}/api/show", sent, msgspec.json.encode({"model": model}), TurnScope("probe"), limits
        )
        shown = mapping(any_json(b"".join([chunk async for chunk in chunks])))
    except (HttpError, msgspec.DecodeError) as error:
        _log.debug("%s does not show %s: %s", root, model, error)
        return None
    if set_to := _NUM_CTX.search(str(shown.get("parameters") or "")):
        return _size(int(set_to[1]))
    return next(
        (
            _size(told)
            for name, told in mapping(shown.get("model_info")).items()
            if str(name).endswith(".context_length")
        ),
        None,
    )


def _root(base_url: str) -> str:
    parts = urlsplit(base_url)
    return f"{parts.scheme}://{parts.netloc}"
