"""One round of tool calls, watched: which ones started, which ended, and what an interrupt leaves of the rest."""

from collections.abc import Sequence

from msgspec.structs import replace

from hermes.runtime.context import TurnContext
from hermes.runtime.outcome import Outcome
from hermes.seams import Sink
from hermes.types import CallFinished, CallStarted, Event, ToolCall, ToolResult

SKIPPED = "[Tool execution cancelled — {name} was skipped due to user interrupt]"
CUT_OFF = "[Tool execution interrupted — {name} was stopped; part of it may have taken effect]"


class ToolRound:
    """Follows a round by its events. `ctx` is the turn's context with this round listening."""

    def __init__(self, ctx: TurnContext, outcome: Outcome, calls: Sequence[ToolCall]) -> None:
        self.ctx = replace(ctx, sink=_Watch(ctx.sink, self))
        self._calls = calls
        self._outcome = outcome
        self._started: set[str] = set()
        self._finished: dict[str, ToolResult] = {}
        self._kept: set[str] = set()

    def fresh(self, results: Sequence[ToolResult]) -> list[ToolResult]:
        """Those of `results` that were not handed out before."""
        new = [result for result in results if result.call_id not in self._kept]
        self._kept.update(result.call_id for result in new)
        return new

    def after_interrupt(self) -> list[ToolResult]:
        """A result for every call of the round, in order: its own, "cut off" if it was running, else "skipped"."""
        return [self._finished.get(call.id) or self._cut(call) for call in self._calls]

    def saw(self, event: Event) -> None:
        if isinstance(event, CallStarted):
            self._started.add(event.call.id)
        elif isinstance(event, CallFinished):
            self._finished[event.call.id] = event.result
            self._outcome.saw(event)

    def _cut(self, call: ToolCall) -> ToolResult:
        if call.id in self._started:
            return ToolResult(call_id=call.id, name=call.name, content=CUT_OFF.format(name=call.name), status="unknown")
        return ToolResult(call_id=call.id, name=call.name, content=SKIPPED.format(name=call.name), status="cancelled")


class _Watch:
    """Passes events on, after the round has seen them."""

    def __init__(self, inner: Sink, round_: ToolRound) -> None:
        self._inner = inner
        self._round = round_

    def emit(self, event: Event) -> None:
        self._round.saw(event)
        self._inner.emit(event)
