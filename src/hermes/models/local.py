"""Models on this machine: asked once which one is loaded, how much it can read, and how it calls tools."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hermes.config.atomic import write_private
from hermes.errors import ProviderError, UserError
from hermes.models.classify import provider_error
from hermes.models.endpoint import Endpoint
from hermes.models.http_errors import HttpError
from hermes.models.text_calls import parse_text_calls
from hermes.models.transport import HttpModel
from hermes.models.wire_modes import make_model
from hermes.scope import TurnScope
from hermes.seams import HttpStream, ModelRequest, RequestOptions, Unit
from hermes.typed import from_json
from hermes.types import Message, ModelEvent, ModelResponse, ToolDefinition, Usage, text_of

PROBE_TIMEOUT_S = 5.0
LONG_BYTES = 20_000
MOST_BYTES_PER_TOKEN = 10  # no text takes so few tokens; JSON around it included
PROBE_TOOL = ToolDefinition("report_ready", "Report that you are ready.", {"type": "object", "properties": {}})
PROBE_WORDS = "Call the tool report_ready now. Do not answer in words."
_log = logging.getLogger(__name__)

Ask = Callable[[ModelRequest], Awaitable[ModelResponse]]


class JsonHttp(HttpStream, Protocol):
    """The byte seam, with a way to ask a server what it is."""

    async def get_json(self, url: str, headers: Mapping[str, str], timeout_s: float) -> Any: ...


class LocalFacts(Struct, frozen=True, omit_defaults=True):
    """What a server told about itself."""

    models: tuple[str, ...] = ()
    server: str = ""  # lmstudio, ollama, llamacpp, vllm, or empty
    windows: dict[str, int] = {}


class Probe(Struct, frozen=True, omit_defaults=True):
    """What is kept about one endpoint and model."""

    window: int | None = None
    text_calls: bool | None = None  # None: could not be told


async def look(http: JsonHttp, base_url: str, headers: Mapping[str, str]) -> LocalFacts:
    """Ask the server at `base_url` for its models and their windows; `ProviderError` when it does not answer."""
    try:
        listed = await http.get_json(f"{base_url.rstrip('/')}/models", headers, PROBE_TIMEOUT_S)
    except HttpError as error:
        raise provider_error(error, "local", base_url) from error
    entries = listed.get("data") if isinstance(listed, Mapping) else None
    entries = [one for one in entries or () if isinstance(one, Mapping) and isinstance(one.get("id"), str)]
    owners = {str(one.get("owned_by", "")).lower() for one in entries}
    windows = {one["id"]: one["max_model_len"] for one in entries if isinstance(one.get("max_model_len"), int)}
    server = next((name for owner, name in _OWNERS.items() if owner in owners), "")
    root = _root(base_url)
    for kind, path in _WINDOW_PATHS.items():
        if server in ("", kind):
            found = await _windows(http, f"{root}{path}", headers, kind)
            windows |= found
            server = server or (kind if found else "")
    models = tuple(one["id"] for one in entries)
    if server == "llamacpp" and "" in windows:
        windows |= dict.fromkeys(models, windows.pop(""))
    loaded = tuple(name for name in models if name in windows) if server in ("lmstudio", "ollama") else ()
    return LocalFacts(models=loaded or models, server=server, windows=windows)


_OWNERS = {"vllm": "vllm", "llamacpp": "llamacpp", "library": "ollama", "organization_owner": "lmstudio"}
_WINDOW_PATHS = {"lmstudio": "/api/v0/models", "ollama": "/api/ps", "llamacpp": "/props"}


async def _windows(http: JsonHttp, url: str, headers: Mapping[str, str], kind: str) -> dict[str, int]:
    """Windows of loaded models by name, in the way each server tells them."""
    try:
        told = await http.get_json(url, headers, PROBE_TIMEOUT_S)
    except HttpError as error:
        _log.debug("%s tells no windows: %s", url, error)
        return {}
    if not isinstance(told, Mapping):
        return {}
    if kind == "llamacpp":
        settings = told.get("default_generation_settings")
        size = settings.get("n_ctx") if isinstance(settings, Mapping) else told.get("n_ctx")
        return {"": size} if isinstance(size, int) else {}
    listed = told.get("data") if kind == "lmstudio" else told.get("models")
    name_field, size_field = ("id", "loaded_context_length") if kind == "lmstudio" else ("name", "context_length")
    return {
        str(one.get(name_field)): one[size_field]
        for one in listed or ()
        if isinstance(one, Mapping) and isinstance(one.get(size_field), int)
    }


def _root(base_url: str) -> str:
    parts = urlsplit(base_url)
    return f"{parts.scheme}://{parts.netloc}"


class LocalModel:
    """`Model` at a local server. `prepare` must have run before `stream`; the client sees to it."""

    def __init__(self, endpoint: Endpoint, http: HttpStream, cache_dir: Path, *, kind: str = "custom") -> None:
        self._endpoint = endpoint
        self._http = http
        self._cache = cache_dir / "endpoints.json"
        self._kind = kind
        self._model: HttpModel | None = None
        self._remarked = False

    @property
    def name(self) -> str:
        return self._endpoint.model or "(the loaded model)"

    @property
    def provider(self) -> str:
        return self._endpoint.provider

    @property
    def base_url(self) -> str:
        return self._endpoint.base_url

    @property
    def endpoint(self) -> Endpoint:
        """Complete once the server has been asked."""
        return self._endpoint

    @property
    def is_ready(self) -> bool:
        return self._model is not None

    @property
    def preparing(self) -> str:
        return f"asking {self.base_url} which model it serves"

    async def prepare(self, ask: Ask | None) -> None:
        """Find the name and the window; with `ask`, also how the model calls tools. What is found is kept on disk."""
        headers = {"authorization": f"Bearer {self._endpoint.api_key}"} if self._endpoint.api_key else {}
        facts = await look(self._http, self._endpoint.base_url, headers)  # type: ignore[arg-type]  # LoopHttp has get_json
        name = self._endpoint.model or _only(facts.models, self._endpoint.base_url)
        window = facts.windows.get(name)
        self._endpoint = replace(self._endpoint, model=name, context_length=self._endpoint.context_length or window)
        self._model = make_model(self._endpoint, self._http)
        known = self._kept()
        if known is None or (known.window != window and window is not None):
            known = Probe(window=window)
        if known.text_calls is None and ask is not None:
            known = replace(known, text_calls=await self._writes_calls_as_text(ask))
            self._keep(known)
        if known.text_calls:
            self._endpoint = replace(self._endpoint, quirks=replace(self._endpoint.quirks, text_calls=True))
            self._model = make_model(self._endpoint, self._http)

    async def stream(self, request: ModelRequest, scope: TurnScope) -> AsyncIterator[ModelEvent]:
        if self._model is None:
            await self.prepare(None)
        assert self._model is not None
        async with aclosing(self._model.stream(request, scope)) as events:  # type: ignore[type-var]  # a generator
            async for event in events:
                yield event

    def remark(self, usage: Usage) -> str | None:
        """What a person should know about the last answer, once: the server read far less than it was sent."""
        read, sent = usage.prompt_tokens, self._model.sent_bytes if self._model else 0
        if self._remarked or read is None or sent < LONG_BYTES or read * MOST_BYTES_PER_TOKEN > sent:
            return None
        self._remarked = True
        return (
            f"{self.name} was sent about {sent // 4} tokens and read {read}: its server has cut the conversation. "
            "Raise the server's context length, or set model.context_length to what it has"
        )

    async def _writes_calls_as_text(self, ask: Ask) -> bool | None:
        """Whether a call that the model was asked for came as text. None: it made none, so nothing is known."""
        request = ModelRequest(
            system="You test a connection.",
            tools=(PROBE_TOOL,),
            units=(Unit([Message(role="user", content=PROBE_WORDS)]),),
            options=RequestOptions(max_tokens=200),
        )
        try:
            answer = await ask(request)
        except ProviderError as error:
            _log.info("the tool-call probe of %s failed: %s", self.base_url, error)
            return None
        if answer.message.tool_calls:
            return False
        return True if parse_text_calls(text_of(answer.message.content))[1] else None

    def _kept(self) -> Probe | None:
        return _read(self._cache).get(f"{self.base_url} {self._endpoint.model}")

    def _keep(self, probe: Probe) -> None:
        if probe.text_calls is None:
            return
        kept = {**_read(self._cache), f"{self.base_url} {self._endpoint.model}": probe}
        self._cache.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(self._cache, msgspec.json.encode(kept).decode())


def _read(file: Path) -> dict[str, Probe]:
    try:
        return from_json(file.read_bytes(), dict[str, Probe])
    except (FileNotFoundError, msgspec.DecodeError):
        return {}  # a cache: what it does not know is asked again


def _only(models: tuple[str, ...], base_url: str) -> str:
    if len(models) == 1:
        return models[0]
    if not models:
        raise UserError(f"the server at {base_url} has no model loaded; load one, then try again")
    shown = ", ".join(models[:6]) + (", …" if len(models) > 6 else "")
    raise UserError(f"the server at {base_url} has several models; choose one with --model: {shown}")
