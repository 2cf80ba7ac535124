"""One round of tool calls: which ones started, which ended, and what an interrupt leaves of the rest."""

from collections.abc import Awaitable, Callable, Sequence
from functools import cache

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from hermes.errors import StoreError
from hermes.models.client import ModelAnswer
from hermes.ops import CallBegun, CallClosed, CallJournalled, StoreOp
from hermes.runtime.steps import HOUSEKEEPING, TurnProgress
from hermes.runtime.turn import Turn
from hermes.tools.calling.arguments import repair_name
from hermes.tools.files.file_memory import reset_repeats
from hermes.types import (
    BlockClosed,
    CallFinished,
    CallStarted,
    Commentary,
    JsonObject,
    Message,
    StatusChanged,
    TasksChanged,
    ToolCall,
    ToolResult,
    text_of,
)

NO_SUCH_TOOLS = "The model kept calling tools that do not exist"
MAX_INVENTED = 3
TASKS_WRITTEN = "tasks"  # the detail of a call that wrote the task list
READS = frozenset({"read_file", "search_files"})
CODE = frozenset({"execute_code"})
SKIPPED = "[Tool execution cancelled — {name} was skipped due to user interrupt]"
MAX_KEPT = 10_000  # calls of one message; more say nothing more, and would hold up everything that reads them
TOO_MANY = "[not run: one message may make {most} calls, and this came after them; ask again for what you still need]"
CUT_OFF = "[Tool execution interrupted — {name} was stopped; part of it may have taken effect]"


async def run_tools(turn: Turn, answer: ModelAnswer) -> None:
    """Store the answer and what it asks for, run that, and have the results ready for the next request."""
    ctx = turn.ctx
    wanted = answer.response.message.tool_calls
    asked = _told_apart(turn, wanted[:MAX_KEPT])
    calls, beyond = asked[: turn.max_calls], asked[turn.max_calls :]
    message = replace(answer.response.message, tool_calls=asked)
    text = text_of(message.content)
    turn.pending += [answer.closing, turn.remember(message), *_unrun_rows(turn, beyond)]
    if text.strip():
        turn.untold.append(Commentary(text, already_streamed=turn.outcome.streamed))
    turn.untold.append(BlockClosed())
    if beyond:
        told = (
            f"the model asked for {len(wanted)} tool calls at once; the first {len(calls)} are run, the others are not"
        )
        turn.untold.append(StatusChanged("warning", told))
    await _run_round(turn, calls)
    turn.ran = ran = tuple([call.name for call in calls])
    if not READS.issuperset(ran):
        reset_repeats(ctx.services.memo)
    for news in await ctx.services.parts.news(*turn.earlier, ctx.session_id):
        turn.tell(news)
    if CODE.issuperset(ran):
        turn.budget.refund()
    known = ctx.tools.names()
    is_invented = known.isdisjoint(ran) and all(repair_name(name, known) is None for name in ran)
    invented = turn.progress.invented + 1 if is_invented else 0
    turn.progress = TurnProgress(
        after_tools=True, aside=text if HOUSEKEEPING.issuperset(ran) else "", invented=invented
    )
    if invented >= MAX_INVENTED:
        shown = ", ".join(sorted(set(ran)))
        turn.outcome.end("invalid_tool_calls", f"{NO_SUCH_TOOLS} ({shown}).", partial=True)


async def _run_round(turn: Turn, calls: Sequence[ToolCall]) -> None:
    """Run the calls; whatever happens, each of them has exactly one result in the history afterwards.

    The first commit holds the message that asks for them, which ones are about to start, and which ones wait.
    """
    round_ = ToolRound(turn, calls)
    try:
        results = await _run_calls()(turn.ctx, calls, round_, turn.guardrails, delay_s=turn.tool_delay_s)
    except BaseException as error:
        if not isinstance(error.__cause__, StoreError):  # else the calls themselves may not be stored
            turn.pending += round_.rows(round_.after_interrupt())
        raise
    turn.pending += round_.rows(_steered(turn, round_, results))
    halted = turn.guardrails.halted
    if halted is not None:
        turn.ctx.sink.emit(StatusChanged("guardrail", f"the turn is stopped: {halted.message}"))
        turn.outcome.end("guardrail_halt", f"I stopped because {halted.message}", guardrail=to_builtins(halted))


@cache  # the statement costs as much as a hundred others, also when all is imported
def _run_calls() -> Callable[..., Awaitable[list[ToolResult]]]:
    from hermes.runtime.tool_executor import run_calls  # paid by the first turn that uses tools

    return run_calls


def _unrun_rows(turn: Turn, calls: Sequence[ToolCall]) -> list[StoreOp]:
    """What answers calls beyond those that one message may make: known at once, so stored with the message."""
    told = TOO_MANY.format(most=turn.max_calls)
    return [
        turn.remember(Message(role="tool", content=told, tool_call_id=call.id, tool_name=call.name, status="cancelled"))
        for call in calls
    ]


def _steered(turn: Turn, round_: "ToolRound", results: Sequence[ToolResult]) -> Sequence[ToolResult]:
    """What the user said meanwhile goes to the model with the last result, not as a turn of its own."""
    said = turn.steer.take() if results else ""
    if not said:
        return results
    from hermes.tools.results.tool_result import with_note  # paid by the first turn that uses tools

    words = f"[The user says meanwhile: {said}]"
    fresh = [result for result in results if result.call_id not in round_.kept]
    if not fresh:  # all of them are stored, and what is stored is not changed
        turn.tell(words)
        return results
    last = fresh[-1]
    return [*fresh[:-1], replace(last, content=with_note(last.content, "_user", words))]


def _told_apart(turn: Turn, calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """The calls under ids that no other call of the session has; one asked for twice over is one."""
    apart: dict[tuple[str, str], ToolCall] = {}
    ids: set[str] = set()
    for call in calls:
        asked = (call.name, call.arguments)
        if asked in apart:
            continue
        if not call.id or call.id in ids or turn.history.builder.knows(call.id):
            call = replace(call, id=turn.ctx.services.ids.new("call"))  # noqa: PLW2901
        ids.add(call.id)
        apart[asked] = call
    return tuple(apart.values())


class ToolRound(Struct):
    """`RoundLog` of a turn: what was begun and what came of it. Each is shown once the row that tells it is stored."""

    turn: Turn
    calls: Sequence[ToolCall]
    begun: set[str] = field(default_factory=set)  # calls whose row says that they were started
    started_args: dict[str, JsonObject] = field(default_factory=dict)  # by call
    results: dict[str, ToolResult] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)  # calls whose results are in the history
    held: dict[str, list[CallStarted | CallFinished]] = field(default_factory=dict)  # by call, for its result's row

    async def persist(self, results: Sequence[ToolResult], starting: Sequence[ToolCall]) -> None:
        session_id = self.turn.ctx.session_id
        if self.begun or self.kept:
            rows: list[StoreOp] = [CallBegun(session_id, call.id) for call in starting]
        else:
            rows = [CallJournalled(session_id, call, call in starting) for call in self.calls]
        self.begun.update([call.id for call in starting])
        await self.turn.commit(*rows, *self.rows(results))

    def started(self, call: ToolCall, args: JsonObject) -> None:
        self.started_args[call.id] = args
        if call.id in self.begun:
            self.turn.ctx.sink.emit(CallStarted(call, args))
        else:
            self.held[call.id] = [CallStarted(call, args)]

    def finished(self, call: ToolCall, args: JsonObject, result: ToolResult) -> None:
        self.results[call.id] = result
        self.turn.outcome.saw(call, result)
        self.held.setdefault(call.id, []).append(CallFinished(call, args, result))

    def rows(self, results: Sequence[ToolResult]) -> list[StoreOp]:
        """What stores those of `results` that are not in the history yet."""
        rows: list[StoreOp] = []
        for result in results:
            if result.call_id in self.kept:
                continue
            self.kept.add(result.call_id)
            for event in self.held.pop(result.call_id, ()):
                is_end = isinstance(event, CallFinished)
                self.turn.untold.append(replace(event, result=result) if is_end else event)
            if (tasks := result.details.get(TASKS_WRITTEN)) is not None:
                self.turn.untold.append(TasksChanged(tuple(tasks)))
            message = Message(
                role="tool",
                content=result.content,
                tool_call_id=result.call_id,
                tool_name=result.name,
                status=result.status,
            )
            rows += [
                self.turn.remember(message),
                CallClosed(self.turn.ctx.session_id, result.call_id, result.status, result.duration_ms),
            ]
        return rows

    def after_interrupt(self) -> list[ToolResult]:
        """A result for every call of the round, in order: its own, "cut off" if it was running, else "skipped"."""
        return [self.results.get(call.id) or self._cut(call) for call in self.calls]

    def _cut(self, call: ToolCall) -> ToolResult:
        args = self.started_args.get(call.id)
        if args is not None:  # it was shown as begun, so it is shown as ended
            words = CUT_OFF.format(name=call.name)
            result = ToolResult(call_id=call.id, name=call.name, content=words, status="unknown")
            self.held.setdefault(call.id, []).append(CallFinished(call, args, result))
            return result
        return ToolResult(call_id=call.id, name=call.name, content=SKIPPED.format(name=call.name), status="cancelled")
