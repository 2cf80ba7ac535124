"""The conversation loop: ask the model, store, run its tools, store, until there is an answer or a reason to stop.

Two commits per iteration: an assistant message with its ledger row and the rows of its calls; then the results
together with the opening of the next attempt. Nothing is acted upon, or shown as done, before it is committed.
"""

from functools import partial
from typing import TYPE_CHECKING, assert_never

from hermes import types
from hermes.errors import BudgetExceeded, LeaseLost, ProviderError, SessionInUse, SessionMoved, StoreError
from hermes.models.client import CallPlan, ModelAnswer
from hermes.runtime import steps
from hermes.runtime.outcome import Ending
from hermes.runtime.session.context_watch import AGAIN_AFTER
from hermes.runtime.tool_round import run_tools
from hermes.runtime.turn import Turn
from hermes.seams import ModelRequest

if TYPE_CHECKING:
    from hermes.runtime.memory_fence import MemoryFence

SUM_UP = (
    "You have used all the model calls of this turn. Without calling tools, say what was done, what was found, "
    "and what is left to do."
)
ANSWER_NOW = "You have used all the model calls of this turn. Without calling tools, give your answer now."
TOO_LONG = (
    ". The conversation no longer fits the model's window: start a new session, or choose a model with a larger one"
)
NO_SUMMARY = "The limit of model calls for this turn was reached, and no summary could be had."
WARN_AT = 0.75
LOST = "session_lost"  # the reason of a turn whose session somebody else took over
MAX_REFUSALS = 3  # of a prompt that is too long, in one turn
_TOO_LONG_REASONS = ("context_overflow", "payload_too_large")


async def run_turn(turn: Turn) -> None:
    """Run the turn to its end. On return the outcome says how it ended, and all of it is stored.

    `SessionInUse` or `SessionMoved` when it could not begin: somebody else has the session, or had it since it was
    read. Then nothing of the turn is stored and nothing was shown.
    """
    scope, outcome = turn.ctx.scope, turn.outcome
    try:
        async with scope:
            await _converse(turn)
    except (SessionInUse, SessionMoved) as error:
        if not turn.lease.fence:
            raise
        _failed(turn, error)
    except ProviderError as error:
        text = f"{error}{TOO_LONG}" if error.reason in _TOO_LONG_REASONS else str(error)
        outcome.end("all_retries_exhausted_no_response", failed=True, error=text, error_reason=error.reason)
    except BudgetExceeded as error:
        outcome.end("spend_cap_reached", failed=True, error=str(error))
    except StoreError as error:
        _failed(turn, error)
    if turn.lease.lost is not None:
        _failed(turn, turn.lease.lost)
    elif scope.cancelled:
        outcome.end("interrupted_by_user", outcome.final_response, interrupted=True)
    elif scope.expired:
        late = f"the {scope.timeout_s:g} s are over that a turn may take (agent.turn_timeout)"
        outcome.end("deadline_exceeded", outcome.final_response, failed=True, error=late)
    outcome.pending_steer = turn.steer.take() or None
    await _close(turn)


def _failed(turn: Turn, error: StoreError) -> None:
    """What is not stored did not happen, for whoever goes on with the session."""
    reason = LOST if isinstance(error, LeaseLost) else f"local_processing_error({type(error).__name__})"
    turn.outcome.end(reason, failed=True, error=str(error))
    turn.drop()


async def _close(turn: Turn) -> None:
    """Store what is left and give the session back, unless the turn's last commit has done that already."""
    ending = turn.ending()
    if not turn.pending and not ending:
        return
    try:
        await turn.commit(*ending)
    except StoreError as error:
        turn.outcome.exit_reason = ""  # however it ended, that is not what the store has
        _failed(turn, error)


async def _converse(turn: Turn) -> None:
    await _keep_room(turn)
    was_asked = True
    if not turn.goes_on:
        for words in await turn.ctx.services.parts.context(turn.facts()):
            turn.tell(words)
        if turn.output is not None:
            turn.output.tell(turn)
    while not turn.outcome.exit_reason:
        if turn.outcome.api_calls >= turn.max_iterations or not turn.budget.consume():
            await _sum_up(turn)
            return
        _warn_of_limit(turn)
        if not was_asked:
            await _keep_room(turn)
        was_asked = False
        try:
            answer = await _ask(turn, turn.tools, "turn")
        except ProviderError as error:
            if not await _made_room_for(turn, error):
                raise
            continue
        await _take(turn, answer)


async def _keep_room(turn: Turn) -> None:
    """Compress the session when its next request would be too long; asked anew before every request."""
    if turn.make_room is not None and await turn.watch.is_full(turn):
        await _make_room(turn)


async def _make_room(turn: Turn, refused: ProviderError | None = None) -> bool:
    """Compress the session; when that cannot be, it is tried again after it has grown, or when a prompt is refused."""
    if turn.make_room is None:
        return False
    await turn.commit()
    if await turn.make_room(turn, refused):
        turn.full_again_at = 0
        return True
    turn.full_again_at = int(turn.watch.tokens(turn) * AGAIN_AFTER)
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


async def _ask(turn: Turn, tools: tuple[types.ToolDefinition, ...], purpose: str) -> ModelAnswer:
    ctx, outcome, emit = turn.ctx, turn.outcome, turn.ctx.sink.emit
    outcome.api_calls += 1
    outcome.streamed = False
    turn.untold.append(types.StepStarted(outcome.api_calls, turn.ran))
    request = turn.request(tools)

    fence: MemoryFence | None = None
    is_begun = False

    def on_delta(delta: types.ModelDelta) -> None:
        nonlocal fence, is_begun
        if not is_begun:
            is_begun = True
            ctx.services.parts.answering()
        if type(delta) is types.TextDelta:
            if fence is None and "<" in delta.text:
                from hermes.runtime.memory_fence import MemoryFence  # paid by answers with a tag

                fence = MemoryFence()
            if fence is not None:
                delta = types.TextDelta(fence.add(delta.text))
            outcome.streamed |= bool(delta.text)
        emit(delta)

    plan = CallPlan(
        purpose=purpose,
        session_id=ctx.session_id,
        before=turn.take_pending(),
        on_stored=turn.show,
        on_delta=on_delta,
        on_status=emit,
        repair=partial(_repaired, turn),
    )
    if getattr(ctx.services.hooks, "heard", None):
        answer = await _heard_call(turn, request, plan)
    else:
        answer = await turn.client.call(request, plan, ctx.scope)
    if fence is not None and (rest := fence.rest()):
        outcome.streamed = True
        emit(types.TextDelta(rest))
    if not is_begun:
        ctx.services.parts.answering()
    response, usage = answer.response, answer.response.usage
    outcome.model, outcome.provider = answer.model, answer.provider
    outcome.last_reasoning = response.message.reasoning or response.message.reasoning_content
    outcome.spent(usage, answer.closing.cost_usd, answer.closing.cost_source)
    if prompt_tokens := usage.prompt_tokens:
        outcome.last_prompt_tokens = prompt_tokens
        turn.history.counted(prompt_tokens)
    turn.watch.answered(turn, usage)
    emit(types.ModelAnswered(answer.model, answer.provider, response.finish_reason, usage))
    return answer


def _repaired(turn: Turn, request: ModelRequest, error: ProviderError) -> ModelRequest | None:
    from hermes.runtime.request_repair import mended  # paid by who is refused

    return mended(turn, request, error)


async def _heard_call(turn: Turn, request: ModelRequest, plan: CallPlan) -> ModelAnswer:
    """The answer, told to whoever listens to requests."""
    from hermes.runtime.turn_hooks import OF_REQUESTS, RequestHooks, heard  # for who has hooks

    hooks = heard(turn.ctx.services.hooks, OF_REQUESTS)
    if hooks is None:
        return await turn.client.call(request, plan, turn.ctx.scope)
    return await RequestHooks(hooks, turn, turn.platform).call(request, plan)


async def _take(turn: Turn, answer: ModelAnswer) -> None:
    """Do what the answer calls for."""
    step = steps.after_response(answer.response, turn.progress)
    match step:
        case steps.RunTools():
            await run_tools(turn, answer)
        case steps.Finish(text=text, reason=reason, partial=partial, broken_by=why):
            last = Ending(reason, text, completed=not partial, partial=partial, error=why or None)
            if turn.output is not None and not partial:
                judged = turn.output.ending(turn, last)
                if judged is None:
                    turn.pending.append(answer.closing)
                    return
                last = judged
            await _store(turn, answer, last)
            last.apply(turn.outcome)
        case steps.Continue():
            await _store(turn, answer)
            turn.progress.continuations += 1
            turn.progress.prefix += types.text_of(answer.response.message.content)
        case steps.Nudge():
            turn.pending.append(answer.closing)
            turn.progress.nudged = True
            turn.tell(steps.NUDGE)
        case steps.Retry():
            turn.pending.append(answer.closing)
            turn.progress.empty_retries += 1
            turn.ctx.sink.emit(types.StatusChanged("retry", "the model's answer was empty; asking again"))
        case steps.Retell(text=text):
            turn.pending.append(answer.closing)
            turn.progress.cut_calls += 1
            turn.tell(text)
        case steps.GiveUp(reason=reason, text=text, partial=partial):
            turn.pending.append(answer.closing)
            if reason == "empty_response_exhausted" and turn.client.fall_back("gave no answer", turn.ctx.sink.emit):
                turn.progress.empty_retries = 0
            else:
                turn.outcome.end(reason, text, partial=partial)
        case _:
            assert_never(step)


async def _store(turn: Turn, answer: ModelAnswer, last: Ending | None = None) -> None:
    """Store the answer; with `last`, as the end of the turn, which it is once that has worked."""
    row = turn.remember(answer.response.message)
    await turn.commit(answer.closing, row, *(turn.ending(last.of(turn.outcome)) if last is not None else ()))


def _warn_of_limit(turn: Turn) -> None:
    """Tell the model once, when three quarters of its calls are used."""
    limit = turn.max_iterations
    if limit >= 8 and turn.outcome.api_calls == int(limit * WARN_AT):
        turn.tell(f"[{limit - turn.outcome.api_calls} of {limit} model calls are left for this task.]")


async def _sum_up(turn: Turn) -> None:
    """The one call beyond the budget: no tools, a last word."""
    used = turn.outcome.api_calls
    reason = f"max_iterations_reached({used}/{turn.max_iterations})"
    await _keep_room(turn)
    turn.tell(SUM_UP if turn.output is None else ANSWER_NOW)
    try:
        answer = await _ask(turn, (), "summary")
    except ProviderError as error:
        turn.outcome.end(reason, NO_SUMMARY, error=str(error))
        return
    finally:
        turn.outcome.api_calls = used
    text = types.text_of(answer.response.message.content)
    if answer.response.message.tool_calls or not text.strip():
        turn.pending.append(answer.closing)
        turn.outcome.end(reason, text if text.strip() else NO_SUMMARY)
        return
    last = Ending(reason, text)
    if turn.output is not None:
        last = turn.output.ending(turn, last, is_last=True) or last
    await _store(turn, answer, last)
    last.apply(turn.outcome)
