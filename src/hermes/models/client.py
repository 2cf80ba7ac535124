"""The one client of model calls: a ledger row per attempt, retries, other keys, other models, one answer out."""

import asyncio
import random
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, runtime_checkable

from msgspec.structs import replace

from hermes.errors import ProviderError, ProviderReason, StoreError
from hermes.models.local import Ask
from hermes.models.spending import Caps, SpendGuard
from hermes.ops import AttemptClosed, AttemptOpened, Outcome, StoreOp
from hermes.scope import TurnScope, unbroken
from hermes.seams import Clock, EventStore, Ids, Model, ModelRequest
from hermes.types import ModelDelta, ModelEvent, ModelResponse, PrefixBroken, ReasoningDelta, StatusChanged, Usage

BACKOFF_BASE_S = 2.0
BACKOFF_MAX_S = 60.0
HOLD_OFF_S = 60.0
STILL_WAITING_S = 10.0
MAX_THOUGHT_CHARS = 1_000_000  # more than any model's budget for thinking
PATIENCE_S = 10.0  # how long a rate limit is waited out while another model could answer at once

Price: TypeAlias = Callable[[str, str, Usage], tuple[float | None, str]]
Notice: TypeAlias = StatusChanged | PrefixBroken
Repair: TypeAlias = Callable[[ModelRequest, ProviderError], ModelRequest | None]

# No other model would fare better, or it is not for us to ask one: the kernel or the person must act.
_FINAL: frozenset[ProviderReason] = frozenset({"context_overflow", "payload_too_large", "policy_blocked"})
_OUTPUT_LIMIT = re.compile(r"max(_completion|_output)?_tokens.{0,160}", re.IGNORECASE | re.DOTALL)
_HELD_OFF: frozenset[ProviderReason] = frozenset({"rate_limit", "billing"})
_REPAIRABLE: frozenset[ProviderReason] = frozenset({"tool_rejected", "image_rejected", "format_error"})


@runtime_checkable
class Rotating(Protocol):
    """A model under several keys."""

    def rotate(self, error: ProviderError) -> bool:
        """Whether another key can be tried now."""
        ...


@runtime_checkable
class Preparing(Protocol):
    """A model that must find out about its server before it is called."""

    @property
    def is_ready(self) -> bool: ...
    async def prepare(self, ask: Ask | None) -> None: ...


@runtime_checkable
class Remarking(Protocol):
    """A model that may have to tell something about its own server."""

    def remark(self, usage: Usage) -> str | None:
        """A word to the person about the last answer."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPlan:
    """Why a call is made, for whom, and what must be durable before it is sent.

    `repair` gives back the request without what the provider refused, or None when it cannot be mended.
    """

    purpose: str
    session_id: str | None
    before: Sequence[StoreOp] = ()
    on_delta: Callable[[ModelDelta], None] = lambda _: None
    on_status: Callable[[Notice], None] = lambda _: None
    repair: Repair = lambda _request, _error: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response, and the ledger row that must be committed together with what is made of it."""

    response: ModelResponse
    closing: AttemptClosed
    model: str
    provider: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """How persistent a client is, and what it may spend. `price` gives dollars and their source, None is unknown."""

    max_attempts: int = 3
    timeout_s: float | None = 1800.0  # of one request, from its first byte sent to the last one read
    price: Price = lambda *_: (None, "none")
    guard: SpendGuard = field(default_factory=lambda: SpendGuard(Caps(), None))
    jitter: Callable[[], float] = random.random


@dataclass(slots=True)
class _Attempt:
    id: str
    model: Model
    started: float
    first_byte: float | None = None


class ModelClient:
    """Calls the first model of `chain`; the others take over, in order, when it cannot answer.

    A turn stays with the model that took over; the next turn begins with the first again, unless that one asked to
    be left alone for a while.
    """

    def __init__(
        self, chain: Sequence[Model], store: EventStore, clock: Clock, ids: Ids, options: ClientOptions | None = None
    ) -> None:
        self._chain = tuple(chain)
        self._store = store
        self._clock = clock
        self._ids = ids
        self._options = options or ClientOptions()
        # Asked once: a check against a protocol walks its methods each time.
        self._preparing = tuple(one if isinstance(one, Preparing) else None for one in self._chain)
        self._rotating = tuple(one if isinstance(one, Rotating) else None for one in self._chain)
        self._remarking = tuple(one if isinstance(one, Remarking) else None for one in self._chain)
        self._place = 0
        self._held_off_until = 0.0
        self._output_limits: dict[str, int] = {}  # by model, as its provider told them

    def _limited(self, request: ModelRequest) -> ModelRequest:
        limit = self._output_limits.get(self.model.name)
        if limit is None or (request.options.max_tokens or limit + 1) <= limit:
            return request
        return replace(request, options=replace(request.options, max_tokens=limit))

    @property
    def model(self) -> Model:
        """The model that the next call goes to."""
        return self._chain[self._place]

    @property
    def guard(self) -> SpendGuard:
        """What this agent has spent in its turn, and the caps on it."""
        return self._options.guard

    def new_turn(self) -> None:
        """Begin with the first model again, and count anew what the turn costs."""
        self.guard.new_turn()
        if self._clock.monotonic() >= self._held_off_until:
            self._place = 0

    def fall_back(self, why: str, on_status: Callable[[Notice], None] = lambda _: None) -> bool:
        """Go on with the next model of the chain; False when there is none."""
        if self._place + 1 >= len(self._chain):
            return False
        before = self.model
        self._place += 1
        text = f"{before.name} ({before.provider}) {why}; {self.model.name} ({self.model.provider}) answers instead"
        on_status(StatusChanged("fallback", text))
        on_status(PrefixBroken("model_switch"))
        return True

    async def call(self, request: ModelRequest, plan: CallPlan, scope: TurnScope) -> Answer:
        """One answer, or `ProviderError` after the last attempt. `plan.before` is committed first, come what may.

        `BudgetExceeded` when a cap leaves no room for the next attempt.
        """
        flight = _Flight(self, plan, scope, request)
        try:
            while True:
                answer = await flight.attempt()
                if answer is not None:
                    return answer
        finally:
            await flight.settle()


class _Flight:
    """One call on its way, over as many attempts as it takes."""

    def __init__(self, client: ModelClient, plan: CallPlan, scope: TurnScope, request: ModelRequest) -> None:
        self._client = client
        self._options = client._options
        self._plan = plan
        self._scope = scope
        self._request = client._limited(request)
        self._before: tuple[StoreOp, ...] = tuple(plan.before)
        self._tries = 0  # of the model in use
        self._repaired: set[str] = set()

    async def attempt(self) -> Answer | None:
        """Ask once: the answer, or None when it is worth asking again."""
        await self._client.guard.check(self._plan.session_id)
        if not await self._prepared():
            return None
        model, clock = self._client.model, self._client._clock
        attempt = _Attempt(self._client._ids.new("att"), model, clock.monotonic())
        before, self._before = self._before, ()
        self._tries += 1
        try:
            await unbroken(self._client._store.commit(*before, self._opening(attempt)))
            response = await self._ask(attempt)
        except StoreError:
            raise  # nothing was opened, so there is nothing to close
        except ProviderError as error:
            self._before = (self._closing(attempt, "failed", error=str(error)),)
            await self._recover(error)
            return None
        except asyncio.CancelledError as stopped:
            if stopped.__cause__ is None:  # else the opening failed
                async with self._scope.cleanup():
                    await self._client._store.commit(self._closing(attempt, "cancelled"))
            raise
        except Exception as error:
            self._before = (self._closing(attempt, "failed", error=repr(error)),)
            raise
        remarking = self._client._remarking[self._client._place]
        if remarking is not None and (remark := remarking.remark(response.usage)) is not None:
            self._plan.on_status(StatusChanged("warning", remark))
        outcome: Outcome = "partial" if response.partial else "ok"
        closing = self._closing(attempt, outcome, usage=response.usage)
        return Answer(response=response, closing=closing, model=model.name, provider=model.provider)

    async def settle(self) -> None:
        """Write what is still to be written when the call has ended without an answer."""
        before, self._before = self._before, ()
        if before:
            async with self._scope.cleanup():
                await self._client._store.commit(*before)

    # -- asking ---------------------------------------------------------------------------------------------------

    async def _prepared(self) -> bool:
        model = self._client._preparing[self._client._place]
        if model is None or model.is_ready:
            return True
        self._plan.on_status(StatusChanged("probe", f"asking {self._client.model.base_url} which model it serves"))
        try:
            await model.prepare(self._probe if self._request.tools else None)
        except ProviderError as error:
            self._tries += 1
            await self._recover(error)
            return False
        return True

    async def _probe(self, request: ModelRequest) -> ModelResponse:
        """One request of the runtime's own to the model in use, in the ledger like any other."""
        inner = _Flight(self._client, CallPlan(purpose="probe", session_id=None), self._scope, request)
        attempt = _Attempt(self._client._ids.new("att"), self._client.model, self._client._clock.monotonic())
        before, self._before = self._before, ()
        await unbroken(self._client._store.commit(*before, inner._opening(attempt)))
        try:
            response = await inner._ask(attempt)
        except ProviderError as error:
            await self._client._store.commit(inner._closing(attempt, "failed", error=str(error)))
            raise
        except asyncio.CancelledError:
            async with self._scope.cleanup():
                await self._client._store.commit(inner._closing(attempt, "cancelled"))
            raise
        await self._client._store.commit(inner._closing(attempt, "ok", usage=response.usage))
        return response

    async def _ask(self, attempt: _Attempt) -> ModelResponse:
        limit = self._scope.child(attempt.id, timeout_s=self._options.timeout_s)
        on_delta = self._plan.on_delta
        response: ModelResponse | None = None
        waiting, thought = _Waiting(self._plan.on_status, attempt.model.name), 0
        try:
            async with limit, closed_after(attempt.model.stream(self._request, limit)) as events:
                async for event in events:
                    waiting.is_quiet = False
                    if attempt.first_byte is None:
                        attempt.first_byte = self._client._clock.monotonic()
                    if isinstance(event, ModelResponse):
                        response = event  # the last one; the loop ends by itself, and with it the request
                        continue
                    thought = thought + len(event.text) if isinstance(event, ReasoningDelta) else 0
                    if thought > MAX_THOUGHT_CHARS:
                        raise ProviderError(
                            f"{attempt.model.name!r} thinks without end", reason="server_error", retryable=True
                        )
                    on_delta(event)
        finally:
            waiting.stop()
        if response is not None:
            return response
        if limit.expired:
            raise ProviderError(
                f"{attempt.model.name!r} was not done within {self._options.timeout_s:g} s",
                reason="timeout",
                retryable=True,
            )
        raise ProviderError("the model's stream ended without an answer", reason="server_error", retryable=True)

    # -- after a failure --------------------------------------------------------------------------------------------

    async def _recover(self, error: ProviderError) -> None:
        """Make the next attempt possible: mended, with another key, from another model, or later. Else raise."""
        if self._mended(error) or self._rotated(error):
            return
        is_last = self._tries >= self._options.max_attempts or not error.retryable
        wants_other = error.reason not in _FINAL and (is_last or self._better_elsewhere(error))
        if wants_other and self._client.fall_back(f"failed ({_short(error)})", self._plan.on_status):
            if error.reason in _HELD_OFF:
                self._client._held_off_until = self._client._clock.monotonic() + HOLD_OFF_S
            self._tries = 0
            return
        if is_last:
            raise error
        await self._wait(error)

    def _mended(self, error: ProviderError) -> bool:
        """Each thing that a provider names is taken out once."""
        what = f"{error.reason}:{error.subject or ''}"
        if error.reason not in _REPAIRABLE or what in self._repaired:
            return False
        self._repaired.add(what)
        mended = self._shorter(error) or self._plan.repair(self._request, error)
        if mended is None:
            return False
        self._request = mended
        self._tries -= 1
        return True

    def _shorter(self, error: ProviderError) -> ModelRequest | None:
        """The request with the output limit that the provider names, when it refuses the one that was asked for."""
        found = _OUTPUT_LIMIT.search(str(error)) if error.reason == "format_error" else None
        limits = [int(number) for number in re.findall(r"\d{3,}", found[0])] if found else []
        if len(limits) < 2:
            return None
        self._client._output_limits[self._client.model.name] = min(limits)
        return self._client._limited(self._request)

    def _rotated(self, error: ProviderError) -> bool:
        model = self._client._rotating[self._client._place]
        if model is None or not model.rotate(error):
            return False
        self._plan.on_status(StatusChanged("retry", f"{_short(error)}; trying again with another key"))
        return True

    def _better_elsewhere(self, error: ProviderError) -> bool:
        """Whether waiting here would be longer than asking the next model."""
        if error.reason == "timeout":
            return True
        return error.reason == "rate_limit" and (error.retry_after_s or PATIENCE_S + 1) > PATIENCE_S

    async def _wait(self, error: ProviderError) -> None:
        closing, self._before = self._before, ()
        await self._client._store.commit(*closing)
        delay = error.retry_after_s
        if delay is None:
            delay = min(BACKOFF_BASE_S * 2 ** (self._tries - 1), BACKOFF_MAX_S) * (1 + self._options.jitter() / 2)
        self._plan.on_status(
            StatusChanged(
                "retry", f"{error}; trying again in {delay:.0f} s ({self._tries}/{self._options.max_attempts})"
            )
        )
        await self._scope.sleep(delay)

    # -- the ledger -------------------------------------------------------------------------------------------------

    def _opening(self, attempt: _Attempt) -> AttemptOpened:
        return AttemptOpened(
            attempt_id=attempt.id,
            session_id=self._plan.session_id,
            purpose=self._plan.purpose,
            provider=attempt.model.provider,
            model=attempt.model.name,
            base_url=attempt.model.base_url,
            started_at=self._client._clock.now(),
        )

    def _closing(
        self, attempt: _Attempt, outcome: Outcome, *, usage: Usage | None = None, error: str | None = None
    ) -> AttemptClosed:
        usage = usage or Usage()
        cost, source = self._options.price(attempt.model.provider, attempt.model.name, usage)
        first = attempt.first_byte
        closing = AttemptClosed(
            attempt_id=attempt.id,
            session_id=self._plan.session_id,
            outcome=outcome,
            usage=usage,
            cost_usd=cost,
            cost_source=source,
            latency_ms=(self._client._clock.monotonic() - attempt.started) * 1000,
            first_byte_ms=None if first is None else (first - attempt.started) * 1000,
            error=error,
        )
        self._client.guard.add(closing)
        return closing


@asynccontextmanager
async def closed_after(events: AsyncIterator[ModelEvent]) -> AsyncIterator[AsyncIterator[ModelEvent]]:
    """Close a generator whatever happens; left to the garbage collector, its request would live on for a while."""
    try:
        yield events
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()


class _Waiting:
    """Tells a person who waits that nothing has come for a while. Each event resets `is_quiet`."""

    def __init__(self, tell: Callable[[Notice], None], model: str) -> None:
        self._tell = tell
        self._model = model
        self._waited = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.is_quiet = True
        self._again()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _again(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(STILL_WAITING_S, self._passed)

    def _passed(self) -> None:
        self._waited = self._waited + STILL_WAITING_S if self.is_quiet else 0.0
        if self.is_quiet:
            self._tell(StatusChanged("waiting", f"nothing has come from {self._model} for {self._waited:.0f} s"))
        self.is_quiet = True
        self._again()


def _short(error: ProviderError) -> str:
    return error.reason.replace("_", " ") + (f", HTTP {error.status}" if error.status else "")
