"""Servers of one's own: asked which models they have, how much those can read, and how they call tools."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from functools import lru_cache
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hermes.config.paths import write_private
from hermes.errors import ProviderError, UserError
from hermes.models.endpoint import Endpoint
from hermes.models.wires.answer_text import parse_text_calls
from hermes.models.wires.transport import HttpModel, make_model
from hermes.scope import TurnScope
from hermes.seams import HttpStream, ModelRequest, RequestOptions, Unit
from hermes.typed import from_json
from hermes.types import Message, ModelEvent, ModelResponse, ToolDefinition, Usage, text_of

PROBES_FILE = "endpoints.json"  # in the cache folder
LONG_BYTES = 20_000
MOST_BYTES_PER_TOKEN = 10  # no text takes so few tokens; JSON around it included
PROBE_TOOL = ToolDefinition("report_ready", "Report that you are ready.", {"type": "object", "properties": {}})
PROBE_WORDS = "Call the tool report_ready now. Do not answer in words."
_log = logging.getLogger(__name__)

Ask = Callable[[ModelRequest], Awaitable[ModelResponse]]


class ServerProbe(Struct, frozen=True, omit_defaults=True):
    """What is kept about one endpoint and model."""

    window: int | None = None
    text_calls: bool | None = None  # None: could not be told
    asked_at: float = 0.0  # for the window
    is_announced: bool = False  # a person was told that nobody knows the window


class LocalModel:
    """`Model` at a local server. `prepare` must have run before `stream`; the client sees to it."""

    def __init__(self, endpoint: Endpoint, http: HttpStream, cache_dir: Path, *, kind: str = "custom") -> None:
        self._endpoint = endpoint
        self._http = http
        self._cache = cache_dir / PROBES_FILE
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
        from hermes.models.providers.server_facts import auth_headers, look  # for who has such a server

        endpoint = self._endpoint
        headers = auth_headers(endpoint)
        facts = await look(self._http, endpoint.base_url, headers, endpoint.model, endpoint.withheld)  # type: ignore[arg-type]  # LoopHttp has get_json
        name = endpoint.model or _only(facts.models, endpoint.base_url)
        window = facts.window(name)
        endpoint = replace(endpoint, model=name)
        if endpoint.asks_window and window is not None:
            # What is loaded is certain; of what is not, the client asks again beside its first call.
            endpoint = replace(endpoint, context_length=window, asks_window=name in facts.unloaded)
        self._endpoint = endpoint
        self._model = make_model(self._endpoint, self._http)
        kept = probe_name(self.base_url, name)
        known = kept_probe(self._cache, kept)
        if known is None or (known.window != window and window is not None):
            known = ServerProbe(window=window, is_announced=known is not None and known.is_announced)
        if known.text_calls is None and ask is not None:
            known = replace(known, text_calls=await self._writes_calls_as_text(ask))
            if known.text_calls is not None:
                keep_probe(self._cache, kept, known)
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


@lru_cache(maxsize=256)  # every call asks for it a dozen times
def probe_name(base_url: str, model: str) -> str:
    """Under which name a model is kept: its address, without a password in it, and its own."""
    scheme, _, rest = base_url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]} {model}"


def kept_probe(file: Path, name: str) -> ServerProbe | None:
    """What is kept in `file` about a model, by its address and name."""
    return _read(file).get(name)


def keep_probe(file: Path, name: str, probe: ServerProbe) -> None:
    """Keep `probe` beside what is kept about others."""
    kept = {**_read(file), name: probe}
    try:
        write_private(file, msgspec.json.encode(kept).decode())
    except UserError as error:  # a cache: it is asked again the next time
        _log.warning("%s", error)


def _read(file: Path) -> dict[str, ServerProbe]:
    try:
        return from_json(file.read_bytes(), dict[str, ServerProbe])
    except (OSError, msgspec.DecodeError):
        return {}  # a cache: what it does not know is asked again


def _only(models: tuple[str, ...], base_url: str) -> str:
    if len(models) == 1:
        return models[0]
    if not models:
        raise UserError(f"the server at {base_url} has no model loaded; load one, then try again")
    shown = ", ".join(models[:6]) + (", …" if len(models) > 6 else "")
    raise UserError(f"the server at {base_url} has several models; choose one with --model: {shown}")
