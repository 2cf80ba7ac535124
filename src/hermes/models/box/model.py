"""`BoxModel`: a model file on this machine, served by a process of our own and asked over the ordinary transport."""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path

from msgspec.structs import replace

from hermes.errors import MissingPart, ProviderError
from hermes.models.box import lean, plain_request
from hermes.models.box.files import bundled_weights, check_gguf, missing
from hermes.models.box.server import INSTALL, BoxServer, ServedFile
from hermes.models.endpoint import Endpoint
from hermes.models.providers.local import Ask
from hermes.models.wires.transport import HttpModel, make_model
from hermes.scope import TurnScope
from hermes.seams import HttpStream, ModelRequest, Supervisor
from hermes.types import ModelEvent, ModelResponse, TextDelta, ToolDefinition, text_of

BUNDLED_NAME = "SmolLM2-135M"
LEAN_WINDOW = 4096
WINDOW = 16_384  # of a file of the user's own, unless model.context_length says otherwise
LEAN_BELOW_BYTES = 300_000_000  # so small a model makes nothing of the full prompt, and takes minutes to read it


class BoxModel:
    """`Model` in a process of its own, which starts with the first call and ends with `aclose`.

    `endpoint.model` is the GGUF file, or empty for the one that comes with Hermes. That one, and any as small, is held
    to the lean profile; a larger one gets the full prompt and all tools. A file of the user's own has its template
    inside. The runtime, which knows who starts processes, sets `supervisor` before the first call.
    """

    def __init__(self, endpoint: Endpoint, http: HttpStream, root: Path) -> None:
        self._file = check_gguf(endpoint.model) if endpoint.model else None
        self._http = http
        self._root = root
        self._server: BoxServer | None = None
        self._model: HttpModel | None = None
        self.is_lean = self._file is None or self._file.stat().st_size < LEAN_BELOW_BYTES
        self._lean: tuple[tuple[ToolDefinition, ...], tuple[ToolDefinition, ...]] = ((), ())
        self.supervisor: Callable[[], Supervisor] | None = None
        window = endpoint.context_length or (LEAN_WINDOW if self.is_lean else WINDOW)
        name = BUNDLED_NAME if self._file is None else self._file.stem
        sampling = {"temperature": 0.2, "repeat_penalty": 1.1} if self.is_lean else {}
        self._endpoint = replace(
            endpoint,
            model=name,
            context_length=window,
            headers={"connection": "close"},  # the server drops a connection after each answer without saying so
            extra_body={**sampling, **endpoint.extra_body},
        )

    @property
    def name(self) -> str:
        return self._endpoint.model

    @property
    def provider(self) -> str:
        return self._endpoint.provider

    @property
    def base_url(self) -> str:
        return self._endpoint.base_url or "the box"

    @property
    def endpoint(self) -> Endpoint:
        """Has an address while the server runs."""
        return self._endpoint

    @property
    def is_bundled(self) -> bool:
        return self._file is None

    @property
    def is_ready(self) -> bool:
        return self._server is not None and self._server.is_running

    @property
    def preparing(self) -> str:
        return f"starting {self.name} on this machine"

    @property
    def server_pid(self) -> int | None:
        return self._server.pid if self._server is not None else None

    async def prepare(self, ask: Ask | None) -> None:
        """Start the server and wait for the weights. How this server calls tools is known, so nothing is probed."""
        if self._server is None:
            self._server = BoxServer(self._served(), self._started_by())
        url = await self._server.start()
        self._endpoint = replace(self._endpoint, base_url=f"{url}/v1")
        self._model = make_model(self._endpoint, self._http)

    async def stream(self, request: ModelRequest, scope: TurnScope) -> AsyncIterator[ModelEvent]:
        if not self.is_ready:
            await self.prepare(None)
        assert self._model is not None
        call = None
        if self.is_lean:
            # One tuple for the session's life: the transport compares by identity.
            if self._lean[0] is not request.tools:
                self._lean = (request.tools, lean.lean_tools(request.tools))
            request = lean.lean_request(request, self._lean[1])
            if (quoted := plain_request.quoted_answer(request, self.name)) is not None:
                yield TextDelta(text_of(quoted.message.content))
                yield quoted
                return
            call = plain_request.asked_call(request)
            request = plain_request.with_one_call(request, call) if call is not None else request
        request = lean.with_call_opened(lean.with_readable_calls(request))
        async with aclosing(self._model.stream(request, scope)) as events:  # type: ignore[type-var]  # a generator
            async for event in events:
                if call is not None and isinstance(event, ModelResponse):
                    yield plain_request.first_call(event)
                else:
                    yield lean.without_cut_call(event) if isinstance(event, ModelResponse) else event

    async def aclose(self) -> None:
        """Stop the server; the next call starts it again."""
        if self._server is not None:
            await self._server.stop()

    def _served(self) -> ServedFile:
        absent = missing(self._root, self._file)
        if absent:
            raise MissingPart(f"the model in the box needs {' and '.join(absent)}; run: {INSTALL}")
        file = self._file or bundled_weights(self._root)
        assert file is not None
        template = Path(__file__).with_name("template.jinja").read_text(encoding="utf-8") if self.is_bundled else ""
        return ServedFile(file=file, window=self._endpoint.context_length or WINDOW, template=template)

    def _started_by(self) -> Supervisor:
        if self.supervisor is None:
            raise ProviderError("the model in the box serves an agent's own calls only", reason="model_not_found")
        return self.supervisor()
