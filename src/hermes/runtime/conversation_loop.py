"""The conversation loop: ask the model, store, run its tools, store, until there is an answer or a reason to stop.

Two commits per iteration: an assistant message with its ledger row and the started rows of its calls; then the
results together with the opening of the next attempt. Nothing is acted upon before it is committed.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import assert_never

import msgspec
from msgspec import Struct, field

from hermes.context.limits import NEVER
from hermes.errors import BudgetExceeded, ProviderError, StoreError
from hermes.models.client import Answer, CallPlan, ModelClient
from hermes.ops import CallClosed, CallJournalled, ContextAttached, MessageAppended, SessionChanged, StoreOp
from hermes.runtime.budget import IterationBudget
from hermes.runtime.context import TurnContext
from hermes.runtime.guardrails import Guardrails
from hermes.runtime.history import History
from hermes.runtime.outcome import Outcome
from hermes.runtime.redaction import clean_message
from hermes.runtime.repairs import (
    QUARANTINED_IMAGES,
    definitions_json,
    is_foreign_reasoning,
    suspects,
    without_pictures,
    without_reasoning,
    without_tool,
)
from hermes.runtime.requests import sendable
from hermes.runtime.steering import SteerBox
from hermes.runtime.steps import (
    HOUSEKEEPING,
    NUDGE,
    Continue,
    Finish,
    GiveUp,
    Nudge,
    Progress,
    Retell,
    Retry,
    RunTools,
    after_response,
)
from hermes.runtime.tool_round import ToolRound
from hermes.runtime.workplaces import news_from_background
from hermes.seams import ModelRequest, RequestOptions, Unit
from hermes.tools.files.memo import reset_repeats
from hermes.tools.names import repair_name
from hermes.types import (
    BlockClosed,
    Commentary,
    JsonObject,
    Message,
    ModelAnswered,
    ModelDelta,
    PrefixBroken,
    StatusChanged,
    StepStarted,
    TextDelta,
    ToolCall,
    ToolDefinition,
    ToolResult,
    text_of,
)

SUM_UP = (
    "You have used all the model calls of this turn. Without calling tools, say what was done, what was found, "
    "and what is left to do."
)
NO_SUCH_TOOLS = "The model kept calling tools that do not exist"
TOO_LONG = (
    ". The conversation no longer fits the model's window: start a new session, or choose a model with a larger one"
)
NO_SUMMARY = "The limit of model calls for this turn was reached, and no summary could be had."
WARN_AT = 0.75
MAX_INVENTED = 3
MAX_REFUSALS = 3  # of a prompt that is too long, in one turn
_TOO_LONG_REASONS = ("context_overflow", "payload_too_large")


class Turn(Struct, kw_only=True):
    """A turn under way: what stays the same for all its requests, and what it has come to so far."""

    ctx: TurnContext
    client: ModelClient
    history: History
    system: str
    tools: tuple[ToolDefinition, ...]
    options: RequestOptions
    budget: IterationBudget
    max_iterations: int
    steer: SteerBox
    guardrails: Guardrails = field(default_factory=Guardrails)
    tool_delay_s: float = 0.0
    prefill: tuple[Unit, ...] = ()
    outcome: Outcome = field(default_factory=Outcome)
    progress: Progress = field(default_factory=Progress)
    pending: list[StoreOp] = field(default_factory=list)  # to be committed with the next request, or at the end
    ran: tuple[str, ...] = ()  # the tools of the last round
    model_config: JsonObject = field(default_factory=dict)  # of the session's row
    earlier: tuple[str, ...] = ()  # the ids that the session had before it was compressed
    compress_at: int = NEVER  # tokens
    full_at: int = NEVER  # the same, as characters of the history
    refusals: int = 0
    make_room: "Callable[[Turn, ProviderError | None], Awaitable[bool]] | None" = None  # by compressing the session

    @property
    def session_id(self) -> str:
        return self.ctx.session_id

    def remember(self, message: Message) -> MessageAppended:
        """Take `message` into the history; the returned row must reach the store before anything acts on it."""
        clean = clean_message(message, self.ctx.services.redactor)
        stamped = msgspec.structs.replace(clean, timestamp=self.ctx.services.clock.now())
        self.history.add(stamped)
        return MessageAppended(self.session_id, stamped)

    def tell(self, text: str) -> None:
        """Say something to the model beside the newest message; replayed there, never part of the transcript."""
        clean = self.ctx.services.redactor.redact(text)
        self.history.builder.attach(clean)
        self.pending.append(ContextAttached(self.session_id, clean))

    def take_pending(self) -> list[StoreOp]:
        ops, self.pending = self.pending, []
        return ops


async def run_turn(turn: Turn) -> None:
    """Run the turn to its end. On return the outcome says how it ended, and all of it is stored."""
    scope, outcome = turn.ctx.scope, turn.outcome
    try:
        async with scope:
            await _converse(turn)
    except ProviderError as error:
        text = f"{error}{TOO_LONG}" if error.reason in _TOO_LONG_REASONS else str(error)
        outcome.end("all_retries_exhausted_no_response", failed=True, error=text, error_reason=error.reason)
    except BudgetExceeded as error:
        outcome.end("spend_cap_reached", failed=True, error=str(error))
    except StoreError as error:
        outcome.end(f"local_processing_error({type(error).__name__})", failed=True, error=str(error))
        turn.pending.clear()
    if scope.cancelled:
        outcome.end("interrupted_by_user", outcome.final_response, interrupted=True)
    elif scope.expired:
        outcome.end("deadline_exceeded", outcome.final_response, failed=True, error="the turn's time is used up")
    outcome.pending_steer = turn.steer.take() or None
    if turn.pending:
        await _commit(turn)


async def _converse(turn: Turn) -> None:
    if turn.history.chars >= turn.full_at:
        await _make_room(turn)
    await _hear_hooks(turn)
    while not turn.outcome.exit_reason:
        if turn.outcome.api_calls >= turn.max_iterations or not turn.budget.consume():
            await _sum_up(turn)
            return
        _warn_of_limit(turn)
        if turn.history.chars >= turn.full_at:
            await _make_room(turn)
        try:
            answer = await _ask(turn, turn.tools, "turn")
        except ProviderError as error:
            if not await _made_room_for(turn, error):
                raise
            continue
        await _take(turn, answer)


async def _make_room(turn: Turn, refused: ProviderError | None = None) -> bool:
    """Compress the session; when that cannot be, it is not tried again before a prompt is refused."""
    if turn.make_room is None:
        return False
    await _commit(turn)
    if await turn.make_room(turn, refused):
        return True
    turn.compress_at = turn.full_at = NEVER
    return False


async def _made_room_for(turn: Turn, error: ProviderError) -> bool:
    """Whether a request that was too long can be made again, shorter; the refused one does not count."""
    if error.reason not in _TOO_LONG_REASONS or turn.refusals >= MAX_REFUSALS:
        return False
    turn.refusals += 1
    if not await _make_room(turn, error):
        return False
    turn.outcome.api_calls -= 1
    turn.budget.refund()
    return True


async def _hear_hooks(turn: Turn) -> None:
    """What `pre_llm_call` hooks have to say goes to the model beside the user's message."""
    said = turn.history.dicts
    payload = {
        "session_id": turn.session_id,
        "user_message": turn.history.last_user,
        "conversation_history": said,
        "is_first_turn": len(said) == 1,
        "model": turn.client.model.name,
    }
    if context := await turn.ctx.services.hooks.transform("pre_llm_call", "", payload):
        turn.tell(context)


async def _ask(turn: Turn, tools: tuple[ToolDefinition, ...], purpose: str) -> Answer:
    turn.outcome.api_calls += 1
    turn.ctx.sink.emit(StepStarted(turn.outcome.api_calls, turn.ran))
    turn.outcome.streamed = False
    request = _request(turn, tools)

    def on_delta(delta: ModelDelta) -> None:
        turn.outcome.streamed = turn.outcome.streamed or isinstance(delta, TextDelta)
        turn.ctx.sink.emit(delta)

    plan = CallPlan(
        purpose=purpose,
        session_id=turn.session_id,
        before=turn.take_pending(),
        on_delta=on_delta,
        on_status=turn.ctx.sink.emit,
        repair=partial(_mend, turn),
    )
    answer = await turn.client.call(request, plan, turn.ctx.scope)
    response, outcome = answer.response, turn.outcome
    outcome.model, outcome.provider = answer.model, answer.provider
    outcome.last_reasoning = response.message.reasoning or response.message.reasoning_content
    outcome.spent(response.usage, answer.closing.cost_usd, answer.closing.cost_source)
    if prompt_tokens := response.usage.prompt_tokens:
        turn.history.counted(prompt_tokens)
        turn.full_at = turn.history.chars_at(turn.compress_at)
    turn.ctx.sink.emit(ModelAnswered(answer.model, answer.provider, response.finish_reason, response.usage))
    return answer


def _request(turn: Turn, tools: tuple[ToolDefinition, ...]) -> ModelRequest:
    units = sendable(turn.history.builder.finish())
    return ModelRequest(
        system=turn.system,
        tools=tools,
        units=(*turn.prefill, *units) if turn.prefill else units,
        options=turn.options,
        session_id=turn.session_id,
    )


def _mend(turn: Turn, request: ModelRequest, error: ProviderError) -> ModelRequest | None:
    """The request without what the provider refused; it stays out of the session, too."""
    if error.reason == "tool_rejected" and (found := without_tool(request.tools, error.subject)) is not None:
        name, turn.tools = found
        turn.pending.append(SessionChanged(turn.session_id, {"tool_definitions": definitions_json(turn.tools)}))
        return _quarantined(turn, f"the tool {name!r} is left out, because the provider refuses it", turn.tools)
    if error.reason == "image_rejected" and (refused := suspects(request.units)):
        known = turn.model_config.get(QUARANTINED_IMAGES, ())
        turn.model_config = {**turn.model_config, QUARANTINED_IMAGES: [*known, *refused]}
        turn.pending.append(SessionChanged(turn.session_id, {"model_config": turn.model_config}))
        turn.history.builder.mend(without_pictures(frozenset(refused)))
        return _quarantined(turn, "a picture is left out, because the provider refuses it", request.tools)
    if is_foreign_reasoning(error):
        turn.history.builder.mend(without_reasoning)
        return _quarantined(turn, "stored reasoning is left out, because another model wrote it", request.tools)
    return None


def _quarantined(turn: Turn, what: str, tools: tuple[ToolDefinition, ...]) -> ModelRequest:
    turn.ctx.sink.emit(StatusChanged("quarantine", what))
    turn.ctx.sink.emit(PrefixBroken("quarantine", turn.outcome.last_prompt_tokens or None))
    return _request(turn, tools)


async def _take(turn: Turn, answer: Answer) -> None:
    """Do what the answer calls for."""
    step = after_response(answer.response, turn.progress)
    match step:
        case RunTools():
            await _run_tools(turn, answer)
        case Finish(text=text, reason=reason, partial=partial):
            await _store(turn, answer)
            turn.outcome.end(reason, text, completed=not partial, partial=partial)
        case Continue():
            await _store(turn, answer)
            turn.progress.continuations += 1
            turn.progress.prefix += text_of(answer.response.message.content)
        case Nudge():
            turn.pending.append(answer.closing)
            turn.progress.nudged = True
            turn.tell(NUDGE)
        case Retry():
            turn.pending.append(answer.closing)
            turn.progress.empty_retries += 1
            turn.ctx.sink.emit(StatusChanged("retry", "the model's answer was empty; asking again"))
        case Retell(text=text):
            turn.pending.append(answer.closing)
            turn.progress.cut_calls += 1
            turn.tell(text)
        case GiveUp(reason=reason, text=text, partial=partial):
            turn.pending.append(answer.closing)
            if reason == "empty_response_exhausted" and turn.client.fall_back("gave no answer", turn.ctx.sink.emit):
                turn.progress.empty_retries = 0
            else:
                turn.outcome.end(reason, text, partial=partial)
        case _:
            assert_never(step)


async def _store(turn: Turn, answer: Answer, *journal: StoreOp) -> None:
    row = turn.remember(answer.response.message)
    await _commit(turn, answer.closing, row, *journal)


async def _commit(turn: Turn, *ops: StoreOp) -> None:
    """Write what is pending and `ops`; an interrupt meanwhile takes effect when it is known to be written."""
    await turn.ctx.services.store.commit(*turn.take_pending(), *ops)


async def _run_tools(turn: Turn, answer: Answer) -> None:
    calls = _told_apart(turn, answer.response.message.tool_calls)
    message = msgspec.structs.replace(answer.response.message, tool_calls=calls)
    text = text_of(message.content)
    answer = _with_message(answer, message)
    await _store(turn, answer, *(CallJournalled(turn.session_id, call) for call in calls))
    if text.strip():
        turn.ctx.sink.emit(Commentary(text, already_streamed=turn.outcome.streamed))
    turn.ctx.sink.emit(BlockClosed())
    await _run_round(turn, calls)
    if news := await news_from_background(turn.ctx.services.environment, *turn.earlier, turn.session_id):
        turn.tell(news)
    names = {call.name for call in calls}
    turn.ran = tuple(call.name for call in calls)
    if names == {"execute_code"}:
        turn.budget.refund()
    known = turn.ctx.tools.names()
    invented = turn.progress.invented + 1 if all(repair_name(name, known) is None for name in names) else 0
    turn.progress = Progress(after_tools=True, aside=text if names <= HOUSEKEEPING else "", invented=invented)
    if invented >= MAX_INVENTED:
        shown = ", ".join(sorted(names))
        turn.outcome.end("invalid_tool_calls", f"{NO_SUCH_TOOLS} ({shown}).", partial=True)


async def _run_round(turn: Turn, calls: Sequence[ToolCall]) -> None:
    """Run the calls; whatever happens, each of them has exactly one result in the history afterwards."""
    from hermes.runtime.tool_executor import run_calls  # noqa: PLC0415 - paid by the first turn that uses tools

    round_ = ToolRound(turn.ctx, turn.outcome, calls)

    async def persist(results: Sequence[ToolResult]) -> None:
        await _commit(turn, *_result_rows(turn, round_.fresh(results)))

    try:
        results = await run_calls(round_.ctx, calls, persist, turn.guardrails, delay_s=turn.tool_delay_s)
    except BaseException:
        turn.pending += _result_rows(turn, round_.fresh(round_.after_interrupt()))
        raise
    turn.pending += _result_rows(turn, round_.fresh(_steered(turn, results)))
    if any(call.name not in ("read_file", "search_files") for call in calls):
        reset_repeats(turn.ctx.services.memo)
    halted = turn.guardrails.halted
    if halted is not None:
        turn.outcome.end("guardrail_halt", f"I stopped because {halted.message}", guardrail=msgspec.to_builtins(halted))


def _result_rows(turn: Turn, results: Sequence[ToolResult]) -> list[StoreOp]:
    rows: list[StoreOp] = []
    for result in results:
        message = Message(
            role="tool",
            content=result.content,
            tool_call_id=result.call_id,
            tool_name=result.name,
            status=result.status,
        )
        rows += [
            turn.remember(message),
            CallClosed(turn.session_id, result.call_id, result.status, result.duration_ms),
        ]
    return rows


def _steered(turn: Turn, results: Sequence[ToolResult]) -> list[ToolResult]:
    """What the user said meanwhile goes to the model with the last result, not as a turn of its own."""
    said = turn.steer.take() if results else ""
    if not said:
        return list(results)
    from hermes.tools.results import with_note  # noqa: PLC0415 - paid by the first turn that uses tools

    last = results[-1]
    content = with_note(last.content, "_user", f"[The user says meanwhile: {said}]")
    return [*results[:-1], msgspec.structs.replace(last, content=content)]


def _told_apart(turn: Turn, calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """The calls under ids that no other call of the session has; one asked for twice over is one."""
    apart: list[ToolCall] = []
    seen: set[tuple[str, str]] = set()
    ids: set[str] = set()
    for call in calls:
        if (call.name, call.arguments) in seen:
            continue
        seen.add((call.name, call.arguments))
        if not call.id or call.id in ids or turn.history.builder.knows(call.id):
            call = msgspec.structs.replace(call, id=turn.ctx.services.ids.new("call"))  # noqa: PLW2901
        ids.add(call.id)
        apart.append(call)
    return tuple(apart)


def _with_message(answer: Answer, message: Message) -> Answer:
    return Answer(
        response=msgspec.structs.replace(answer.response, message=message),
        closing=answer.closing,
        model=answer.model,
        provider=answer.provider,
    )


def _warn_of_limit(turn: Turn) -> None:
    """Tell the model once, when three quarters of its calls are used."""
    limit = turn.max_iterations
    if limit >= 8 and turn.outcome.api_calls == int(limit * WARN_AT):
        turn.tell(f"[{limit - turn.outcome.api_calls} of {limit} model calls are left for this task.]")


async def _sum_up(turn: Turn) -> None:
    """The one call beyond the budget: no tools, a last word."""
    used = turn.outcome.api_calls
    reason = f"max_iterations_reached({used}/{turn.max_iterations})"
    turn.tell(SUM_UP)
    try:
        answer = await _ask(turn, (), "summary")
    except ProviderError as error:
        turn.outcome.end(reason, NO_SUMMARY, error=str(error))
        return
    finally:
        turn.outcome.api_calls = used
    text = text_of(answer.response.message.content)
    if answer.response.message.tool_calls or not text.strip():
        turn.pending.append(answer.closing)
        turn.outcome.end(reason, text if text.strip() else NO_SUMMARY)
        return
    await _store(turn, answer)
    turn.outcome.end(reason, text)
