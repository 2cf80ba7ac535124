"""Whether the next request would be too long: asked before every call, told the usage after every answer."""

import logging
from typing import TYPE_CHECKING, Any

import msgspec

from hermes.config.sections import compression as compression_section
from hermes.config.sections import context as context_section
from hermes.context.limits import CHARS_PER_TOKEN, threshold_tokens
from hermes.seams import ContextEngine, Sink
from hermes.types import StatusChanged, ToolDefinition, Usage

if TYPE_CHECKING:
    from hermes.config.settings import Settings
    from hermes.models.client import ModelClient
    from hermes.runtime.options import AgentOptions
    from hermes.runtime.turn import Turn

MIN_WORTH = 4  # fewer messages than these hold nothing that could be summed up
AGAIN_AFTER = 1.1  # how much a prompt has to grow until it is tried once more to shorten it
log = logging.getLogger("hermes")


def compress_share(options: "AgentOptions", settings: "Settings") -> float | None:
    """The share of the window that a session may fill; None when it is never compressed by itself."""
    section = settings.of(compression_section.Section)
    has_engine = options.session.context_engine is not None or settings.of(context_section.Section).engine != "none"
    return section.threshold if section.enabled and has_engine else None


class ContextWatch:
    """One agent's. An engine of the caller's own decides by itself; for the default one a number does.

    The default engine is loaded when there is something to compress, so that a session which never gets there does not
    pay for it. Whatever an engine of one's own raises is told and logged; the turn goes on without it.
    """

    def __init__(self, client: "ModelClient", share: float | None, own: ContextEngine | None) -> None:
        self._client = client
        self.share = share  # of the window, that a session may fill; None: it is never compressed by itself
        self._own = own
        self._engine = own
        self._model: tuple[Any, ...] = ()  # as the engine was told
        self._session = ""  # that the engine knows of
        self._messages: list[dict[str, Any]] = []  # of that session, as its newest turn left them
        self._usage = Usage(), 0  # of the newest answer, and what it came to
        self._tools: tuple[tuple[ToolDefinition, ...], int] = ((), 0)  # that were measured last, and their size
        self._failed: set[str] = set()  # what was told of an engine already

    def uses(self, engine: ContextEngine) -> None:
        """The engine that compresses is loaded; it hears of the answers from now on, and of the last."""
        if self._engine is not engine:
            self._engine = engine
            engine.update_from_response(_told(*self._usage))

    def introduce(self, window: int = 0) -> None:
        """Tell the engine which model answers and how much fits; `window` is what does where a refusal has shown it."""
        if self._engine is None:
            return
        model, endpoint = self._client.model, self._client.endpoint
        key = endpoint.api_key if endpoint is not None and self._own is not None else ""
        told = (model.name, window or self._client.window.tokens, model.base_url, key, model.provider)
        if told != self._model:
            self._model = told
            self.call_engine("update_model", None, *told)

    def begin(self, turn: "Turn", *, is_new: bool) -> None:
        """A turn begins. The engine learns the model, and once the session: `is_new` when nothing was said in it."""
        if self._own is None:
            return
        self.introduce()
        if self._session == turn.session_id:
            return
        if is_new:
            self.call_engine("on_session_reset", None)
        self._session = turn.session_id
        self.call_engine("on_session_start", None, turn.session_id, model=self._model[0], context_length=self._model[1])

    def moved(self, old: str, messages: list[dict[str, Any]], new: str) -> None:
        """The session goes on under another id."""
        self._session, self._messages = new, []
        self.call_engine("on_session_end", None, old, messages)
        self.call_engine("on_session_start", None, new, previous=old)

    def end(self) -> None:
        """The agent is closed."""
        if self._own is not None and self._session:
            self.call_engine("on_session_end", None, self._session, list(self._messages))
            self._session, self._messages = "", []

    async def is_full(self, turn: "Turn") -> bool:
        """Whether the session is to be compressed before its next request."""
        is_worth = len(turn.history.dicts) >= MIN_WORTH
        if self.share is None or not (is_worth or self._own is not None):
            return False
        if is_worth:
            # Where there is something to shorten, the window must be known before the request; else beside it.
            await self._client.learn_window()
        tokens = self.tokens(turn)
        if self._own is None:
            wants = tokens >= threshold_tokens(self._client.window.tokens, self.share)
        else:
            self.introduce()
            wants = self._wants(turn, tokens)
        return wants and tokens >= turn.full_again_at

    def answered(self, turn: "Turn", usage: Usage) -> None:
        """A model has answered; where its provider counted nothing, an estimate stands in."""
        self._messages = turn.history.dicts
        self._usage = usage, usage.prompt_tokens or (self.tokens(turn) if self._engine is not None else 0)
        if self._engine is not None:
            self.call_engine("update_from_response", None, _told(*self._usage), sink=turn.ctx.sink)

    def tokens(self, turn: "Turn") -> int:
        """About what the next request comes to: as last counted, and an estimate of what came since, or of it all."""
        tokens = turn.history.about_tokens
        if turn.history.tokens:
            return tokens
        if turn.tools is not self._tools[0]:
            sizes = [len(tool.description) + len(msgspec.json.encode(tool.parameters)) for tool in turn.tools]
            self._tools = turn.tools, sum(sizes)
        return tokens + (len(turn.system) + self._tools[1]) // CHARS_PER_TOKEN

    def _wants(self, turn: "Turn", tokens: int) -> bool:
        sink = turn.ctx.sink
        wants = bool(self.call_engine("should_compress", False, tokens, sink=sink))
        if not wants and not turn.outcome.api_calls:
            wants = bool(self.call_engine("should_compress_preflight", False, list(turn.history.dicts), sink=sink))
        if wants and not turn.history.tokens:
            wants = not self.call_engine("should_defer_preflight_to_real_usage", False, tokens, sink=sink)
        return wants

    def call_engine(self, name: str, default: Any, *args: Any, sink: Sink | None = None, **keywords: Any) -> Any:
        """What the engine's method returns; `default` when it has none, or raises."""
        engine = self._engine
        method = getattr(engine, name, None)
        if method is None:
            return default
        try:
            return method(*args, **keywords)
        except Exception as error:  # the border to an engine of one's own: nothing it raises may end the turn
            log.exception("context engine %r failed in %s", getattr(engine, "name", "?"), name)
            if sink is not None and name not in self._failed:
                self._failed.add(name)
                told = f"the context engine failed in {name} ({type(error).__name__}: {error}); it goes on without it"
                sink.emit(StatusChanged("warning", told))
            return default


def _told(usage: Usage, prompt_tokens: int) -> dict[str, int]:
    """The usage of one answer in the words of the contract."""
    written = usage.output_tokens or 0
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": written,
        "total_tokens": prompt_tokens + written,
        "cache_read_tokens": usage.cache_read_tokens or 0,
        "cache_write_tokens": usage.cache_write_tokens or 0,
        "reasoning_tokens": usage.reasoning_tokens or 0,
    }
