"""One attempt and its row in the ledger: opened before the request, closed after, with what it may come to between."""

import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, field

from hermes.config.sections import agent as agent_section
from hermes.models.abilities import Described
from hermes.models.providers.windows import Windows
from hermes.models.request_size import BYTES_PER_TOKEN, size_of
from hermes.ops import AttemptClosed, AttemptOpened, CallRecord, Outcome
from hermes.seams import Clock, Ids, Model, ModelRequest
from hermes.spend import NOTHING, Cap, SpendLimit, Spent
from hermes.types import ModelResponse, Usage

if TYPE_CHECKING:
    from hermes.models.call_record import SentBytes


class Caps(Struct, frozen=True, kw_only=True):
    """The caps of one agent."""

    turn: Cap = Cap()
    session: Cap = Cap()
    day: Cap = Cap()


NO_CAPS = Caps()


class SpendGuard:
    """What an agent's turn has spent, and the caps that hold for its next call. Helpers share their agent's guard.

    The caps of session and day are held by the store, where all processes meet: see `AttemptOpened.limits`.
    """

    def __init__(self, caps: Caps = NO_CAPS, now: Callable[[], float] = time.time) -> None:
        self.caps = caps
        self._now = now
        self.under_way: dict[str, Spent] = {}
        self.turn = NOTHING
        self.has_money_cap = any(cap.usd is not None for cap in (caps.turn, caps.session, caps.day))
        self.has_caps = bool(caps.turn or caps.session or caps.day)

    def new_turn(self) -> None:
        """Forget what the last turn cost."""
        self.turn = NOTHING

    def limits(self, session_id: str | None) -> tuple[SpendLimit, ...]:
        """What the store is asked to hold the next call to."""
        limits = []
        if self.caps.session and session_id is not None:
            limits.append(SpendLimit(span="session", cap=self.caps.session, session_id=session_id))
        if self.caps.day:
            limits.append(SpendLimit(span="day", cap=self.caps.day, since=midnight(self._now())))
        return tuple(limits)

    def most_output(self, _model: Model, _request: ModelRequest, _price: "Price") -> int | None:
        """The most that the answer to the request may have in tokens, where the guard limits that."""
        return None

    def seconds_for(self, limit_s: float | None) -> float | None:
        """How long a call that was let in may take: `limit_s`, unless the guard leaves less."""
        return limit_s

    def enter(self, attempt_id: str, most: Spent) -> None:
        """A call that may come to `most` begins; `BudgetExceeded` when the turn has no room for it."""
        if self.caps.turn:
            under_way = sum(self.under_way.values(), NOTHING)
            SpendLimit(span="turn", cap=self.caps.turn).require_room(self.turn, under_way)
        self.under_way[attempt_id] = most

    def leave(self, attempt_id: str, spent: Spent) -> None:
        """The call has ended, also one that failed."""
        if self.under_way.pop(attempt_id, None) is not None:
            self.turn = self.turn + spent


def midnight(now: float) -> float:
    day = time.localtime(now)
    return time.mktime((day.tm_year, day.tm_mon, day.tm_mday, 0, 0, 0, 0, 0, -1))


USER_PRICE = "user_override"  # the source of a price that config.yaml gives
DEFAULT_OUTPUT = 32_000  # what a model may write when nobody knows better

Price: TypeAlias = Callable[[str, str, Usage], tuple[float | None, str]]


class ClientOptions(Struct, frozen=True, kw_only=True):
    """How persistent a client is, and what it may spend. `price` gives dollars and their source, None is unknown.

    `windows` knows how much models read, or finds out.
    """

    max_attempts: int = 3
    stream_retries: int | None = None  # after a request that broke or fell silent; None is like any other failure
    max_retry_after_s: float = agent_section.Section().max_retry_after
    timeout_s: float | None = 1800.0  # of one request, from its first byte sent to the last one read
    price: Price = lambda *_: (None, "none")
    price_version: str = ""  # of the prices that no user gave
    guard: SpendGuard = field(default_factory=SpendGuard)
    windows: Windows = field(default_factory=Windows)
    jitter: Callable[[], float] = random.random
    sent: "SentBytes | None" = None


class Attempt(Struct, kw_only=True):
    """One request under way."""

    id: str
    model: Model
    purpose: str
    session_id: str | None
    started: float
    first_byte: float | None = None
    response: ModelResponse | None = None
    prompt_tokens: int = 0  # at most; measured only under a cap
    received_chars: int = 0
    is_held: bool = False  # counts for caps while it is under way
    is_open: bool = False  # has a row


class Book:
    """Writes the rows of one client's attempts."""

    def __init__(self, clock: Clock, ids: Ids, options: ClientOptions) -> None:
        self._clock = clock
        self._ids = ids
        self._price = options.price
        self._price_version = options.price_version
        self._guard = options.guard

    def begin(self, model: Model, purpose: str, session_id: str | None) -> Attempt:
        return Attempt(
            id=self._ids.new("att"),
            model=model,
            purpose=purpose,
            session_id=session_id,
            started=self._clock.monotonic(),
        )

    def opening(self, attempt: Attempt, request: ModelRequest) -> AttemptOpened:
        """The row to open; `BudgetExceeded` when the turn has no room for it. Room in the turn is taken at once."""
        model = attempt.model
        held = NOTHING
        limits: tuple[SpendLimit, ...] = ()
        if self._guard.has_caps:
            held, limits = self._most(attempt, request), self._guard.limits(attempt.session_id)
            self._guard.enter(attempt.id, held)
            attempt.is_held = True
        return AttemptOpened(
            attempt_id=attempt.id,
            session_id=attempt.session_id,
            purpose=attempt.purpose,
            provider=model.provider,
            model=model.name,
            base_url=model.base_url,
            started_at=self._clock.now(),
            held=held,
            limits=limits,
        )

    def most_output(self, model: Model, request: ModelRequest) -> int | None:
        """See `SpendGuard.most_output`."""
        return self._guard.most_output(model, request, self._price)

    def not_opened(self, attempt: Attempt) -> None:
        """Give back the room that the attempt has taken."""
        self._guard.leave(attempt.id, NOTHING)

    def closing(
        self,
        attempt: Attempt,
        outcome: Outcome,
        *,
        usage: Usage | None = None,
        error: str | None = None,
        record: CallRecord | None = None,
    ) -> AttemptClosed:
        usage = usage or Usage()
        cost, source = self._price(attempt.model.provider, attempt.model.name, usage)
        first = attempt.first_byte
        closing = AttemptClosed(
            attempt_id=attempt.id,
            session_id=attempt.session_id,
            outcome=outcome,
            usage=usage,
            cost_usd=cost,
            cost_source=source,
            pricing_version=source if source == USER_PRICE else self._price_version,
            latency_ms=(self._clock.monotonic() - attempt.started) * 1000,
            first_byte_ms=None if first is None else (first - attempt.started) * 1000,
            error=error,
            held=self._came_to(attempt, usage) if attempt.is_held else NOTHING,
            record=record,
        )
        if attempt.is_held:
            self._guard.leave(attempt.id, closing.spent)
        return closing

    def is_unpriced(self, model: Model) -> bool:
        """Whether a cap in money cannot hold this model, because nobody knows its price."""
        return self._guard.has_money_cap and self._price(model.provider, model.name, Usage(1, 1))[0] is None

    def _most(self, attempt: Attempt, request: ModelRequest) -> Spent:
        """What the request may come to, if the model writes all it can."""
        endpoint = attempt.model.endpoint if isinstance(attempt.model, Described) else None
        attempt.prompt_tokens = size_of(request).most_tokens
        written = request.options.max_tokens or (endpoint.max_output if endpoint else None) or DEFAULT_OUTPUT
        return self._worth(attempt, written)

    def _came_to(self, attempt: Attempt, usage: Usage) -> Spent:
        """An estimate for an answer that was begun and never counted: somebody will be asked to pay for it."""
        if attempt.first_byte is None or usage.output_tokens is not None:
            return NOTHING
        return self._worth(attempt, 2 * attempt.received_chars // BYTES_PER_TOKEN)

    def _worth(self, attempt: Attempt, written: int) -> Spent:
        """Words that are written to a provider's cache may cost more than others."""
        model, read = attempt.model, attempt.prompt_tokens
        plain, _ = self._price(model.provider, model.name, Usage(read, written))
        cached, _ = self._price(model.provider, model.name, Usage(0, written, cache_write_tokens=read))
        return Spent(max(plain or 0.0, cached or 0.0), read + written)
