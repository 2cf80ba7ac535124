"""Events of a turn, told through the callbacks of the contract."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, assert_never

from hermes.runtime.options import CallbackOptions
from hermes.types import (
    BlockClosed,
    CallAnnounced,
    CallFinished,
    CallStarted,
    Commentary,
    Event,
    MinorEvent,
    ReasoningDelta,
    SessionRotated,
    StatusChanged,
    StepStarted,
    TextDelta,
    ToolCall,
    TurnFinished,
    text_of,
)

_callbacks = attrgetter(
    "tool_progress_callback",
    "tool_start_callback",
    "tool_complete_callback",
    "thinking_callback",
    "reasoning_callback",
    "step_callback",
    "tool_gen_callback",
    "status_callback",
    "interim_assistant_callback",
    "stream_delta_callback",
)


class ContractCallbacks:
    """Delivers each event to whichever callbacks were given. An exception in one goes to the caller of the turn."""

    def __init__(self, options: CallbackOptions, stream_callback: Callable[..., Any] | None = None) -> None:
        self._to = options
        self._stream = [call for call in (stream_callback, options.stream_delta_callback) if call is not None]
        self._after_tools = False

    def deliver(self, event: Event) -> None:
        match event:
            case TextDelta(text=text):
                self._streamed(text)
            case ReasoningDelta(text=text):
                _call(self._to.reasoning_callback, text)
            case StepStarted(step=step, previous=previous):
                _call(self._to.step_callback, step, list(previous))
                _call(self._to.thinking_callback, f"model call {step}")
            case CallAnnounced(name=name):
                _call(self._to.tool_gen_callback, name)
            case BlockClosed():
                _call(self._to.thinking_callback, "")
                for stream in self._stream:
                    stream(None)
                self._after_tools = True
            case Commentary(text=text, already_streamed=streamed):
                _call(self._to.interim_assistant_callback, text, already_streamed=streamed)
            case CallStarted(call=call, args=args):
                _call(self._to.tool_progress_callback, "tool.started", call.name, _preview(call), args)
                _call(self._to.tool_start_callback, call.id, call.name, args)
            case CallFinished():
                self._finished(event)
            case StatusChanged(kind=kind, message=message):
                _call(self._to.status_callback, kind, message)
            case SessionRotated() | TurnFinished() | MinorEvent():
                return  # the contract has no callback for them; a `sink` hears them
            case _:
                assert_never(event)

    def _streamed(self, text: str) -> None:
        if self._after_tools:
            text, self._after_tools = f"\n\n{text}", False
        for stream in self._stream:
            stream(text)

    def _finished(self, event: CallFinished) -> None:
        result = text_of(event.result.content)
        _call(
            self._to.tool_progress_callback,
            "tool.completed",
            event.call.name,
            None,
            None,
            duration=event.result.duration_ms / 1000,
            is_error=event.result.status != "ok",
            result=result,
        )
        _call(self._to.tool_complete_callback, event.call.id, event.call.name, event.args, result)


def anyone_listens(options: CallbackOptions) -> bool:
    """Whether an event would reach one of the callbacks."""
    return any(_callbacks(options))


def _call(callback: Callable[..., Any] | None, *args: Any, **keywords: Any) -> None:
    if callback is not None:
        callback(*args, **keywords)


def _preview(call: ToolCall) -> str:
    return call.arguments if len(call.arguments) <= 100 else call.arguments[:97] + "..."
