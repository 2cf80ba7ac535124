"""`verbose_logging`: the log tells what a turn does, step by step."""

import logging
from typing import Any, assert_never

from hermes.runtime.options import CallbackOptions
from hermes.types import (
    CallFinished,
    CallStarted,
    Commentary,
    Event,
    MinorEvent,
    ModelAnswered,
    ReasoningDelta,
    SessionRotated,
    StatusChanged,
    StepStarted,
    TextDelta,
    TurnFinished,
    text_of,
)

log = logging.getLogger("hermes.turn")


class LogSink:
    """`Sink` that writes a line per step, beginning with `log_prefix`; of arguments and results a few characters."""

    def __init__(self, options: CallbackOptions) -> None:
        self._prefix = f"{options.log_prefix} " if options.log_prefix else ""
        self._most = max(0, options.log_prefix_chars)

    def emit(self, event: Event) -> None:
        match event:
            case StepStarted(step=step):
                self._line("model call %d", step)
            case ModelAnswered(model=model, provider=provider, finish_reason=reason):
                self._line("%s (%s) answered: %s", model, provider, reason)
            case CallStarted(call=call):
                self._line("%s(%s)", call.name, self._cut(call.arguments))
            case CallFinished(call=call, result=result):
                shown = self._cut(text_of(result.content))
                self._line("%s: %s after %.0f ms: %s", call.name, result.status, result.duration_ms, shown)
            case StatusChanged(kind=kind, message=message):
                self._line("%s: %s", kind, message)
            case TextDelta() | ReasoningDelta() | Commentary() | SessionRotated() | TurnFinished() | MinorEvent():
                return  # no step; the words are in the session
            case _:
                assert_never(event)

    def _line(self, text: str, *values: Any) -> None:
        log.info("%s" + text, self._prefix, *values)

    def _cut(self, text: str) -> str:
        return text if len(text) <= self._most else text[: self._most] + "…"
