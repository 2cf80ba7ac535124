"""The one client of model calls: a ledger row per attempt, retries, other keys, other models, one answer out."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from hermes import types
from hermes.errors import BudgetExceeded, ProviderError, ProviderReason, StoreError
from hermes.models.abilities import Abilities, Preparing
from hermes.models.attempts import DEFAULT_OUTPUT, Attempt, Book, ClientOptions, Price, SpendGuard
from hermes.models.endpoint import Endpoint
from hermes.models.providers.windows import Window, beside
from hermes.models.request_size import size_of
from hermes.models.stream_wait import StreamWait, let_go
from hermes.models.wires.classify import sized
from hermes.ops import AttemptClosed, Outcome, StoreOp
from hermes.scope import TurnScope
from hermes.seams import Clock, EventStore, Ids, Model, ModelRequest

BACKOFF_BASE_S = 2.0
BACKOFF_MAX_S = 60.0
HOLD_OFF_S = 60.0
PATIENCE_S = 10.0  # how long a rate limit is waited out while another model could answer at once
CROWDED_S = 0.05, 1.0  # how often room under a cap is asked for again: at first, and after a while

Notice: TypeAlias = types.StatusChanged | types.PrefixBroken
Repair: TypeAlias = Callable[[ModelRequest, ProviderError], ModelRequest | None]
OnFailed: TypeAlias = Callable[[ProviderError, int], Awaitable[None]]

# No other model would fare better, or it is not for us to ask one: the kernel or the person must act.
_FINAL: frozenset[ProviderReason] = frozenset({"context_overflow", "payload_too_large", "policy_blocked"})
_OUTPUT_LIMIT = r"(?is)max(_completion|_output)?_tokens.{0,160}"
_HELD_OFF: frozenset[ProviderReason] = frozenset({"rate_limit", "billing"})
_REPAIRABLE: frozenset[ProviderReason] = frozenset({"tool_rejected", "image_rejected", "format_error"})


class CallPlan(Struct, frozen=True, kw_only=True):
    """Why a call is made, for whom, and what must be durable before it is sent.

    `repair` gives back the request without what the provider refused, or None when it cannot be mended.
    """

    purpose: str
    session_id: str | None
    before: Sequence[StoreOp] = ()
    on_stored: Callable[[], None] = lambda: None  # called when `before` is durable
    on_delta: Callable[[types.ModelDelta], None] = lambda _: None
    on_status: Callable[[Notice], None] = lambda _: None
    on_failed: OnFailed | None = None  # after an attempt that failed, with how many were made
    repair: Repair = lambda _request, _error: None


class ModelAnswer(Struct, frozen=True, kw_only=True):
    """A response, and the ledger row that must be committed together with what is made of it."""

    response: types.ModelResponse
    closing: AttemptClosed
    model: str
    provider: str


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
        self._options = options or ClientOptions()
        self._book = Book(clock, ids, self._options)
        self._abilities = tuple(Abilities.of(one) for one in self._chain)
        self._go_to(0)
        self._held_off_until = 0.0
        self._waiting = StreamWait()
        self._output_limits: dict[str, int] = {}  # by model, as its provider told them
        self._warned: set[str] = set()  # models of which a person was told what to know before their first call

    @property
    def guard(self) -> SpendGuard:
        """What this agent has spent in its turn, and the caps on it."""
        return self._options.guard

    @property
    def max_attempts(self) -> int:
        """How often a request is tried at most."""
        return self._options.max_attempts

    @property
    def endpoint(self) -> Endpoint | None:
        """Where the next call goes, for a model that has an address."""
        described = self.abilities.described
        return described.endpoint if described else None

    @property
    def window(self) -> Window:
        """What the model in use reads at once, as far as anybody knows by now."""
        return self._options.windows.of(self.model.name, self.endpoint)

    @property
    def price(self) -> Price:
        """What calls cost."""
        return self._options.price

    def refused_window(self, tokens: int) -> None:
        """The model in use has refused a request and named its window."""
        self._options.windows.named(self.model.name, self.endpoint, tokens)

    async def learn_window(self) -> None:
        """Ask the server of the model in use for its window, when that is due: whoever needs it before the call."""
        endpoint, windows = self.endpoint, self._options.windows
        if endpoint is not None and windows.is_due(endpoint):
            await windows.ask(endpoint)

    def new_turn(self) -> None:
        """Begin with the first model again, and count anew what the turn costs."""
        self._options.guard.new_turn()
        if self._place and self._clock.monotonic() >= self._held_off_until:
            self._go_to(0)

    def _go_to(self, place: int) -> None:
        self._place = place
        self.model = self._chain[place]  # that the next call goes to
        self.abilities = self._abilities[place]  # to do beside answering

    def fall_back(self, why: str, on_status: Callable[[Notice], None] = lambda _: None) -> bool:
        """Go on with the next model of the chain; False when there is none."""
        if self._place + 1 >= len(self._chain):
            return False
        before = self.model
        self._go_to(self._place + 1)
        text = f"{before.name} ({before.provider}) {why}; {self.model.name} ({self.model.provider}) answers instead"
        on_status(types.StatusChanged("fallback", text))
        on_status(types.PrefixBroken("model_switch"))
        return True

    async def call(self, request: ModelRequest, plan: CallPlan, scope: TurnScope) -> ModelAnswer:
        """One answer, or `ProviderError` after the last attempt. `plan.before` is committed first, come what may.

        `BudgetExceeded` when a cap leaves no room for the next attempt.
        """
        windows = self._options.windows
        if windows.is_due(endpoint := self.endpoint):
            return await beside(self._call(request, plan, scope), self.learn_window())
        if endpoint is not None and windows.has_news(endpoint):
            plan.on_status(types.StatusChanged("warning", await windows.announcement(endpoint)))
        return await self._call(request, plan, scope)

    async def _call(self, request: ModelRequest, plan: CallPlan, scope: TurnScope) -> ModelAnswer:
        flight = _Flight(self, plan, scope, request, plan.before)
        try:
            while True:
                try:
                    model = self.abilities.preparing
                    if model is not None and not model.is_ready:
                        await flight.prepare(model)
                    return await flight.attempt()
                except ProviderError as error:
                    if plan.on_failed is not None:
                        await plan.on_failed(error, flight.tries)
                    await flight.recover(error)
        finally:
            if flight.unwritten:
                await flight.settle()


class _Flight(Struct, eq=False):
    """One call on its way, over as many attempts as it takes."""

    _client: ModelClient
    _plan: CallPlan
    _scope: TurnScope
    _request: ModelRequest
    unwritten: Sequence[StoreOp]
    _tries: int = 0  # of the model in use
    _repaired: frozenset[str] = frozenset()

    @property
    def tries(self) -> int:
        return self._tries

    async def attempt(self) -> ModelAnswer:
        """Ask once. After a failure, the row that closes the attempt is the next thing to be written."""
        client, book = self._client, self._client._book
        model, endpoint = client.model, client.endpoint
        attempt = book.begin(model, self._plan.purpose, self._plan.session_id)
        self._tries += 1
        request = self._request
        lent = book.most_output(model, request)
        if client._output_limits or lent is not None or (endpoint is not None and endpoint.max_tokens):
            request = self._limited(endpoint, lent)
        try:
            refusal = await self._open(attempt, request)
            if refusal is not None:
                await self._wait_for_room(attempt, request, refusal)
            if model.name not in client._warned:
                self._warn(model)
            if warning := client._options.windows.warning(model.name, endpoint):
                self._plan.on_status(types.StatusChanged("warning", warning))
            if client._options.sent is not None:
                client._options.sent.forget()
            response = await self._ask(attempt, request, endpoint)
        except (StoreError, BudgetExceeded):
            raise  # nothing was opened, so there is nothing to close
        except ProviderError as error:
            self.unwritten = (book.closing(attempt, "failed", error=str(error)),)
            raise
        except asyncio.CancelledError:
            if attempt.is_open:
                async with self._scope.cleanup():
                    await client._store.commit(book.closing(attempt, "cancelled"))
            raise
        except Exception as error:
            self.unwritten = (book.closing(attempt, "failed", error=repr(error)),)
            raise
        remarking = client.abilities.remarking
        if remarking is not None and (remark := remarking.remark(response.usage)) is not None:
            self._plan.on_status(types.StatusChanged("warning", remark))
        outcome: Outcome = "partial" if response.partial else "ok"
        sent = client._options.sent
        record = None if sent is None else sent.record(request, client.endpoint, response)
        closing = book.closing(attempt, outcome, usage=response.usage, record=record)
        return ModelAnswer(response=response, closing=closing, model=model.name, provider=model.provider)

    def _limited(self, endpoint: Endpoint | None, lent: int | None) -> ModelRequest:
        """The request, with the output limit of the settings for the model in use, of its provider, or of a budget."""
        options = self._request.options
        limit = options.max_tokens or (endpoint.max_tokens if endpoint else None)
        told = self._client._output_limits.get(self._client.model.name)
        if told is not None:
            limit = min(limit or told, told)
        if lent is not None and lent < (limit or (endpoint.max_output if endpoint else None) or DEFAULT_OUTPUT):
            limit = lent
        if limit is None or limit == options.max_tokens:
            return self._request
        return replace(self._request, options=replace(options, max_tokens=limit))

    async def _wait_for_room(self, attempt: Attempt, request: ModelRequest, refusal: BudgetExceeded | None) -> None:
        """Open the row later: calls under way may use up what a cap leaves."""
        pause_s = CROWDED_S[0]
        while refusal is not None:
            if not refusal.is_crowded:
                raise refusal
            if pause_s == CROWDED_S[0]:
                self._plan.on_status(types.StatusChanged("waiting", str(refusal)))
            await self.settle()  # a closing among it may be what others wait for
            await self._scope.sleep(pause_s)
            pause_s = min(pause_s * 1.5, CROWDED_S[1])
            refusal = await self._open(attempt, request)

    async def _open(self, attempt: Attempt, request: ModelRequest) -> BudgetExceeded | None:
        """Commit the opening together with what must be durable before; the refusal when a cap has no room for it."""
        before, self.unwritten = self.unwritten, ()
        book = self._client._book
        try:
            await self._client._store.commit(*before, book.opening(attempt, request))
            attempt.is_open = True
        except BudgetExceeded as refusal:
            self.unwritten = before
            return refusal
        except asyncio.CancelledError as stopped:
            attempt.is_open = stopped.__cause__ is None  # else it was not written
            if isinstance(stopped.__cause__, BudgetExceeded):
                self.unwritten = before
            raise
        finally:
            if attempt.is_open:
                self._plan.on_stored()
            else:
                book.not_opened(attempt)
        return None

    def _warn(self, model: Model) -> None:
        """Tell what a person should know before the first call: an unknown price, a key kept back."""
        self._client._warned.add(model.name)
        if self._client._book.is_unpriced(model):
            told = (
                f"nobody knows what {model.name} costs, so the caps in dollars cannot stop it: its calls count as $0 "
                "for them. Cap tokens (spending.*_tokens), or tell its price (providers.NAME.prices)"
            )
            self._plan.on_status(types.StatusChanged("warning", told))
        endpoint = self._client.endpoint
        if endpoint is not None and endpoint.withheld:
            self._plan.on_status(types.StatusChanged("warning", endpoint.withheld))

    async def settle(self) -> None:
        """Write what is still to be written when the call has ended without an answer."""
        before, self.unwritten = self.unwritten, ()
        if before:
            async with self._scope.cleanup():
                await self._client._store.commit(*before)
            self._plan.on_stored()

    # -- asking ---------------------------------------------------------------------------------------------------

    async def prepare(self, model: Preparing) -> None:
        """Let the model in use do what it must before it is called."""
        self._plan.on_status(types.StatusChanged("probe", model.preparing))
        try:
            await model.prepare(self._probe if self._request.tools else None)
        except ProviderError:
            self._tries += 1
            raise

    async def _probe(self, request: ModelRequest) -> types.ModelResponse:
        """One request of the runtime's own to the model in use, in the ledger like any other."""
        plan = CallPlan(purpose="probe", session_id=None, before=self.unwritten, on_stored=self._plan.on_stored)
        self.unwritten = ()
        inner = _Flight(self._client, plan, self._scope, request, plan.before)
        try:
            answer = await inner.attempt()
            inner.unwritten = (answer.closing,)
        finally:
            await inner.settle()
        return answer.response

    async def _ask(self, attempt: Attempt, request: ModelRequest, endpoint: Endpoint | None) -> types.ModelResponse:
        """The response at the end of the model's events; all before it are passed on."""
        timeout_s = (endpoint.timeout_s if endpoint else None) or self._client._options.timeout_s
        limit = self._scope.child(attempt.id, timeout_s=self._client.guard.seconds_for(timeout_s))
        waiting = self._client._waiting
        if waiting.tell is not None:
            waiting = StreamWait()
        waiting.start(self._plan.on_status, attempt.model.name)
        try:
            async with limit:
                events = attempt.model.stream(request, limit)
                try:
                    async for event in events:
                        waiting.is_quiet = False
                        if attempt.first_byte is None:
                            attempt.first_byte = self._client._clock.monotonic()
                        if isinstance(event, types.ModelResponse):
                            attempt.response = event  # the last one; the loop ends by itself, and with it the request
                        else:
                            self._pass_on(attempt, event)
                except BaseException:
                    await let_go(events)
                    raise
        finally:
            waiting.tell = None
        if attempt.response is not None:
            return attempt.response
        if limit.expired:
            raise ProviderError(
                f"{attempt.model.name!r} was not done within {timeout_s:g} s",
                reason="timeout",
                retryable=True,
            )
        raise ProviderError("the model's stream ended without an answer", reason="server_error", retryable=True)

    def _pass_on(self, attempt: Attempt, delta: types.ModelDelta) -> None:
        if attempt.is_held and not isinstance(delta, types.CallAnnounced):
            attempt.received_chars += len(delta.text)
        self._plan.on_delta(delta)

    # -- after a failure --------------------------------------------------------------------------------------------

    async def recover(self, error: ProviderError) -> None:
        """Make the next attempt possible: mended, with another key, from another model, or later. Else raise."""
        if self._mended(error) or self._rotated(error):
            return
        is_last = self._tries >= self._most_attempts(error) or not error.retryable
        if not is_last and (error.retry_after_s or 0.0) > self._client._options.max_retry_after_s:
            error, is_last = self._not_waited_for(error), True
        if is_last:
            error = self._seen_in_its_size(error)
        wants_other = error.reason not in _FINAL and (is_last or self._better_elsewhere(error))
        if wants_other and self._client.fall_back(f"failed ({_short(error)})", self._plan.on_status):
            if error.reason in _HELD_OFF:
                self._client._held_off_until = self._client._clock.monotonic() + HOLD_OFF_S
            self._tries = 0
            return
        if is_last:
            raise error
        await self._wait(error)

    def _seen_in_its_size(self, error: ProviderError) -> ProviderError:
        """Some servers refuse what is too long without saying so; then the length itself is the sign."""
        return sized(error, size_of(self._request), self._client.window.tokens)

    def _most_attempts(self, error: ProviderError) -> int:
        options = self._client._options
        retries = options.stream_retries
        is_silent = error.reason in ("timeout", "connection")
        return options.max_attempts if retries is None or not is_silent else retries + 1

    def _mended(self, error: ProviderError) -> bool:
        """Each thing that a provider names is taken out once."""
        what = f"{error.reason}:{error.subject or ''}"
        if error.reason not in _REPAIRABLE or what in self._repaired:
            return False
        self._repaired |= {what}
        mended = self._shorter(error) or self._plan.repair(self._request, error)
        if mended is None:
            return False
        self._request = mended
        self._tries -= 1
        return True

    def _shorter(self, error: ProviderError) -> ModelRequest | None:
        """The request with the output limit that the provider names, when it refuses the one that was asked for."""
        found = re.search(_OUTPUT_LIMIT, str(error)) if error.reason == "format_error" else None
        limits = [int(number) for number in re.findall(r"[1-9]\d{2,8}", found[0])] if found else []
        if len(limits) < 2:
            return None
        self._client._output_limits[self._client.model.name] = min(limits)
        return self._request  # each attempt keeps to it from now on

    def _rotated(self, error: ProviderError) -> bool:
        model = self._client.abilities.rotating
        if model is None or not (other := model.rotate(error)):
            return False
        self._plan.on_status(types.StatusChanged("retry", f"{_short(error)}; trying again with {other}"))
        return True

    def _better_elsewhere(self, error: ProviderError) -> bool:
        """Whether waiting here would be longer than asking the next model."""
        if error.reason == "timeout":
            return True
        return error.reason == "rate_limit" and (error.retry_after_s or PATIENCE_S + 1) > PATIENCE_S

    def _not_waited_for(self, error: ProviderError) -> ProviderError:
        most_s, asked_s = self._client._options.max_retry_after_s, error.retry_after_s or 0.0
        told = (
            f"{error}. It asks to be left alone for {asked_s:,.0f} s, and agent.max_retry_after allows {most_s:,g}: "
            "ask again later, or name a model that takes over (hermes fallback add)"
        )
        later = ProviderError(told, reason=error.reason, status=error.status, retry_after_s=asked_s)
        later.__cause__ = error.__cause__
        return later

    async def _wait(self, error: ProviderError) -> None:
        closing, self.unwritten = self.unwritten, ()
        await self._client._store.commit(*closing)
        delay = error.retry_after_s
        if delay is None:
            jitter = 1 + self._client._options.jitter() / 2
            delay = min(BACKOFF_BASE_S * 2 ** (self._tries - 1), BACKOFF_MAX_S) * jitter
        self._plan.on_status(
            types.StatusChanged(
                "retry", f"{error}; trying again in {delay:.0f} s ({self._tries}/{self._most_attempts(error)})"
            )
        )
        await self._scope.sleep(delay)


def _short(error: ProviderError) -> str:
    return error.reason.replace("_", " ") + (f", HTTP {error.status}" if error.status else "")
