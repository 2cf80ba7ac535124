"""The one client of model calls: a ledger row per attempt, retries with backoff, one answer out."""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hermes.errors import ProviderError
from hermes.ops import AttemptClosed, AttemptOpened, Outcome, StoreOp
from hermes.scope import TurnScope, unbroken
from hermes.seams import Clock, EventStore, Ids, Model, ModelRequest
from hermes.types import ModelDelta, ModelResponse, StatusChanged, Usage

BACKOFF_BASE_S = 2.0
BACKOFF_MAX_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPlan:
    """Why a call is made, for whom, and what must be durable before it is sent."""

    purpose: str
    session_id: str | None
    before: Sequence[StoreOp] = ()
    on_delta: Callable[[ModelDelta], None] = lambda _: None
    on_status: Callable[[StatusChanged], None] = lambda _: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response, and the ledger row that must be committed together with what is made of it."""

    response: ModelResponse
    closing: AttemptClosed
    model: str
    provider: str


@dataclass(frozen=True, slots=True)
class _Attempt:
    id: str
    model: Model
    started: float


class ModelClient:
    """Calls the first model of `chain`, retrying what is worth retrying.

    `price` gives dollars and their source for a model's usage; None is "unknown", never zero.
    """

    def __init__(
        self,
        chain: Sequence[Model],
        store: EventStore,
        clock: Clock,
        ids: Ids,
        *,
        max_attempts: int = 3,
        price: Callable[[str, str, Usage], tuple[float | None, str]] = lambda *_: (None, "none"),
    ) -> None:
        self._chain = tuple(chain)
        self._store = store
        self._clock = clock
        self._ids = ids
        self._max_attempts = max_attempts
        self._price = price

    @property
    def model(self) -> Model:
        """The model that the next call goes to."""
        return self._chain[0]

    async def call(self, request: ModelRequest, plan: CallPlan, scope: TurnScope) -> Answer:
        """One answer, or `ProviderError` after the last attempt. `plan.before` is committed first, come what may."""
        before: Sequence[StoreOp] = plan.before
        for number in range(1, self._max_attempts + 1):
            attempt = _Attempt(self._ids.new("att"), self.model, self._clock.monotonic())
            await unbroken(self._store.commit(*before, self._opening(attempt, plan)))
            try:
                response = await self._ask(attempt, request, plan, scope)
            except ProviderError as error:
                before = [self._closing(attempt, plan, "failed", error=str(error))]
                if number == self._max_attempts or not error.retryable:
                    await self._store.commit(*before)
                    raise
                await self._wait(error, number, plan, scope, before)
                before = ()
            except asyncio.CancelledError:
                async with scope.cleanup():
                    await self._store.commit(self._closing(attempt, plan, "cancelled"))
                raise
            else:
                outcome: Outcome = "partial" if response.partial else "ok"
                return Answer(
                    response=response,
                    closing=self._closing(attempt, plan, outcome, usage=response.usage),
                    model=attempt.model.name,
                    provider=attempt.model.provider,
                )
        raise AssertionError("the last attempt returns or raises")

    async def _ask(self, attempt: _Attempt, request: ModelRequest, plan: CallPlan, scope: TurnScope) -> ModelResponse:
        async for event in attempt.model.stream(request, scope):
            if isinstance(event, ModelResponse):
                return event
            plan.on_delta(event)
        raise ProviderError("the model's stream ended without an answer", reason="server_error", retryable=True)

    async def _wait(
        self, error: ProviderError, number: int, plan: CallPlan, scope: TurnScope, closing: Sequence[StoreOp]
    ) -> None:
        await self._store.commit(*closing)
        delay = error.retry_after_s
        if delay is None:
            delay = min(BACKOFF_BASE_S * 2 ** (number - 1), BACKOFF_MAX_S) * (1 + random.random() / 2)
        plan.on_status(
            StatusChanged("retry", f"{error}; trying again in {delay:.0f} s ({number}/{self._max_attempts})")
        )
        await scope.sleep(delay)

    def _opening(self, attempt: _Attempt, plan: CallPlan) -> AttemptOpened:
        return AttemptOpened(
            attempt_id=attempt.id,
            session_id=plan.session_id,
            purpose=plan.purpose,
            provider=attempt.model.provider,
            model=attempt.model.name,
            base_url=attempt.model.base_url,
            started_at=self._clock.now(),
        )

    def _closing(
        self,
        attempt: _Attempt,
        plan: CallPlan,
        outcome: Outcome,
        *,
        usage: Usage | None = None,
        error: str | None = None,
    ) -> AttemptClosed:
        usage = usage or Usage()
        cost, source = self._price(attempt.model.provider, attempt.model.name, usage)
        return AttemptClosed(
            attempt_id=attempt.id,
            session_id=plan.session_id,
            outcome=outcome,
            usage=usage,
            cost_usd=cost,
            cost_source=source,
            latency_ms=(self._clock.monotonic() - attempt.started) * 1000,
            error=error,
        )
