"""What `verbose_logging` writes: a line a step, to the logger "hermes.turn"."""

import logging
from typing import Any, assert_never

from hermes import types
from hermes.runtime.options import CallbackOptions

turn_log = logging.getLogger("hermes.turn")


class LogSink:
    """`Sink` that writes a line per step, beginning with `log_prefix`; of arguments and results a few characters."""

    def __init__(self, options: CallbackOptions) -> None:
        self._prefix = f"{options.log_prefix} " if options.log_prefix else ""
        self._most = max(0, options.log_prefix_chars)

    def emit(self, event: types.Event) -> None:
        match event:
            case types.StepStarted(step=step):
                self._line("model call %d", step)
            case types.ModelAnswered(model=model, provider=provider, finish_reason=reason):
                self._line("%s (%s) answered: %s", model, provider, reason)
            case types.CallStarted(call=call):
                self._line("%s(%s)", call.name, self._cut(call.arguments))
            case types.CallFinished(call=call, result=result):
                shown = self._cut(types.text_of(result.content))
                self._line("%s: %s after %.0f ms: %s", call.name, result.status, result.duration_ms, shown)
            case types.StatusChanged(kind=kind, message=message):
                self._line("%s: %s", kind, message)
            case (
                types.TextDelta()
                | types.ReasoningDelta()
                | types.Commentary()
                | types.SessionRotated()
                | types.TurnFinished()
                | types.MinorEvent()
            ):
                return  # no step; the words are in the session
            case _:
                assert_never(event)

    def _line(self, text: str, *values: Any) -> None:
        turn_log.info("%s" + text, self._prefix, *values)

    def _cut(self, text: str) -> str:
        return text if len(text) <= self._most else text[: self._most] + "…"
