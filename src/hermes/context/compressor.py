"""`ContextCompressor`, the default engine: bulk is pruned, the middle is summed up by a model, the ends stay."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from hermes.context import limits
from hermes.context import summary as summaries
from hermes.context.engine import ContextEngine, Messages
from hermes.context.prune_output import pruned
from hermes.dicts import from_dict, to_dict
from hermes.errors import BudgetExceeded, HermesError
from hermes.types import Message

COOL_DOWN_S = 600.0
LEAST_GAIN = 0.10
MAX_IDLE = 2
ASSUMED_WINDOW = 64_000  # where nobody knows one


class SummaryRequest(Struct, frozen=True, kw_only=True):
    """One question to a summariser. `on_main` asks the agent's own model in place of the one for summaries."""

    system: str
    text: str
    max_tokens: int
    on_main: bool = False


Summariser: TypeAlias = Callable[[SummaryRequest], Awaitable[str]]


class ContextCompressor(ContextEngine):
    """Sums up the middle of a long conversation.

    `summarise` asks a model and raises `HermesError` when it cannot; then it is asked once more on the agent's own
    model, and after that the conversation stays as it is and is left alone for ten minutes. Two compressions in a row
    that save less than a tenth end the automatic ones.
    """

    def __init__(  # noqa: PLR0913 - the parameters of the contract
        self,
        summarise: Summariser,
        *,
        context_length: int = 0,
        threshold_percent: float = 0.50,
        protect_first_n: int = 3,
        protect_last_n: int = 20,
        summary_target_ratio: float = 0.20,
        summary_window: int | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._summarise = summarise
        self._now = now
        self.threshold_percent = threshold_percent
        self.protect_first_n = protect_first_n
        self.protect_last_n = protect_last_n
        self.summary_target_ratio = summary_target_ratio
        self.summary_window = summary_window
        self.cool_down_until = 0.0
        self.idle_compressions = 0
        self.update_model("", context_length)

    @property
    def name(self) -> str:
        return "compressor"

    @property
    def is_thrashing(self) -> bool:
        """Whether compressing has stopped to help."""
        return self.idle_compressions >= MAX_IDLE

    def update_from_response(self, usage: Mapping[str, Any]) -> None:
        self.last_prompt_tokens = int(usage.get("prompt_tokens") or 0)
        self.last_completion_tokens = int(usage.get("completion_tokens") or 0)
        total = self.last_prompt_tokens + self.last_completion_tokens
        self.last_total_tokens = int(usage.get("total_tokens") or total)

    def update_model(
        self, model: str, context_length: int, base_url: str = "", api_key: str = "", provider: str = ""
    ) -> None:
        self.context_length = context_length
        self.threshold_tokens = limits.threshold_tokens(context_length, self.threshold_percent)

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        tokens = self.last_prompt_tokens if prompt_tokens is None else prompt_tokens
        return tokens >= self.threshold_tokens and not self.is_thrashing and self._now() >= self.cool_down_until

    def has_content_to_compress(self, messages: Messages) -> bool:
        past = _read(messages)
        return len(past) >= self.protect_first_n + 4 and bool(self._cut(past).middle(past))

    async def compress(
        self, messages: Messages, current_tokens: int | None = None, focus_topic: str | None = None
    ) -> Messages:
        """The head, a summary and the tail; or `messages` itself, and `last_error` says why if it could not be had."""
        self.last_error = ""
        if len(messages) < self.protect_first_n + 4:
            return messages
        past = _read(messages)
        lean = pruned(past, self._prunable(past, current_tokens or 0))
        if (asked := summaries.newest_question(past)) is not None:
            lean[asked] = past[asked]
        where = self._cut(lean, current_tokens or 0)
        middle = where.middle(lean)
        if not middle:
            return messages
        earlier = summaries.earlier_summary(lean[where.head : where.tail])
        try:
            summary = await self._summary(middle, earlier, focus_topic or "")
        except HermesError as error:
            self.last_error = str(error)
            self.cool_down_until = self._now() + COOL_DOWN_S
            return messages
        shorter = assembled(lean, where, summary)
        return self._weighed(messages, past, shorter)

    def _weighed(self, messages: Messages, past: Sequence[Message], shorter: Sequence[Message]) -> Messages:
        """`shorter` if it is; how much was saved decides whether it is worth doing again."""
        before, after = limits.tokens_of(past), limits.tokens_of(shorter)
        self.idle_compressions = 0 if after <= before * (1 - LEAST_GAIN) else self.idle_compressions + 1
        if after >= before:
            return messages
        self.cool_down_until = 0.0
        self.compression_count += 1
        self.last_prompt_tokens = self.last_completion_tokens = self.last_total_tokens = 0
        return [to_dict(message) for message in shorter]

    def _budget(self, size: int, counted: int) -> int:
        """What the tail may keep of a conversation that we estimate at `size` and a provider has counted otherwise."""
        real = max(size, counted, 1)
        return limits.tail_tokens(min(self.threshold_tokens, real), self.summary_target_ratio) * size // real

    def _prunable(self, past: Sequence[Message], counted: int) -> int:
        """Messages before this place may lose their bulk."""
        budget = self._budget(limits.tokens_of(past), counted)
        newest = min(max(self.protect_last_n, summaries.MIN_TAIL), len(past))
        return min(len(past) - newest, limits.fitting_from(past, budget))

    def _cut(self, past: Sequence[Message], counted: int = 0) -> summaries.Cut:
        budget = self._budget(limits.tokens_of(past), counted)
        return summaries.cut(past, protect_first=self.protect_first_n, tail_budget=budget)

    async def _summary(self, middle: Sequence[Message], earlier: str, focus: str) -> str:
        """Notes on `middle`, piece by piece where it is more than the summariser can read at once."""
        size = limits.tokens_of(middle)
        budget = limits.summary_tokens(size, self.context_length or ASSUMED_WINDOW)
        known = [window for window in (self.summary_window, self.context_length) if window]
        most = limits.piece_chars(min(known, default=ASSUMED_WINDOW))
        notes = earlier
        for piece in summaries.pieces(middle, most - min(len(earlier), most // 2)):
            text = summaries.request_text(piece, earlier=notes, focus=focus, budget_tokens=budget)
            notes = await self._asked(text, budget)
        return notes[: 2 * budget * limits.CHARS_PER_TOKEN]

    async def _asked(self, text: str, budget: int) -> str:
        request = SummaryRequest(system=summaries.ROLE, text=text, max_tokens=budget + limits.MAX_SUMMARY_TOKENS)
        try:
            return _said(await self._summarise(request))
        except BudgetExceeded:
            raise  # another model costs money, too
        except HermesError:
            again = SummaryRequest(system=summaries.ROLE, text=text, max_tokens=request.max_tokens, on_main=True)
            return _said(await self._summarise(again))


def assembled(messages: Sequence[Message], where: summaries.Cut, summary: str) -> list[Message]:
    """The cut conversation with its summary; the person's newest question is there word for word."""
    after = [messages[where.asked]] if where.asked is not None else []
    after += messages[where.tail :]
    return summaries.with_summary(summary, messages[: where.head], after)


def _read(messages: Messages) -> list[Message]:
    """The messages, an earlier summary apart from the one that it joined."""
    return [part for message in messages for part in summaries.parted(from_dict(message))]


class EmptySummary(HermesError):
    """A model was asked for a summary and said nothing."""


def _said(text: str) -> str:
    if not text.strip():
        raise EmptySummary("the model for summaries answered with nothing")
    return text.strip()
