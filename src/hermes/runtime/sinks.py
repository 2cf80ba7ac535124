"""Where the events of a turn go."""

import logging
from collections.abc import Callable
from operator import attrgetter
from typing import Any, assert_never

from hermes import types
from hermes.runtime.options import CallbackOptions
from hermes.seams import Sink

log = logging.getLogger(__name__)

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
    """Delivers each event to whichever callbacks were given.

    One that raises is logged the first time, and the turn goes on: to watch a turn must not be able to end it.
    """

    def __init__(self, options: CallbackOptions, stream_callback: Callable[..., Any] | None = None) -> None:
        self._to = options
        self._stream = {"stream_callback": stream_callback, "stream_delta_callback": options.stream_delta_callback}
        self._after_tools = False
        self._broken: set[str] = set()  # those whose failure is logged already

    def deliver(self, event: types.Event) -> None:
        match event:
            case types.TextDelta(text=text):
                self._streamed(text)
            case types.ReasoningDelta(text=text):
                self._call("reasoning_callback", text)
            case types.StepStarted(step=step, previous=previous):
                self._call("step_callback", step, list(previous))
                self._call("thinking_callback", f"model call {step}")
            case types.CallAnnounced(name=name):
                self._call("tool_gen_callback", name)
            case types.BlockClosed():
                self._call("thinking_callback", "")
                self._stream_to_all(None)
                self._after_tools = True
            case types.Commentary(text=text, already_streamed=streamed):
                self._call("interim_assistant_callback", text, already_streamed=streamed)
            case types.CallStarted(call=call, args=args):
                self._call("tool_progress_callback", "tool.started", call.name, _preview(call), args)
                self._call("tool_start_callback", call.id, call.name, args)
            case types.CallFinished():
                self._finished(event)
            case types.StatusChanged(kind=kind, message=message):
                self._call("status_callback", kind, message)
            case types.ChildProgress():
                self._child(event)
            case types.SessionRotated() | types.TurnFinished() | types.MinorEvent():
                return  # the contract has no callback for them; a `sink` hears them
            case _:
                assert_never(event)

    def _child(self, event: types.ChildProgress) -> None:
        from hermes.runtime.delegation.child_record import as_keywords  # for who has children

        kind, preview = f"subagent.{event.stage}", event.preview or None
        told = as_keywords(event)
        self._call("tool_progress_callback", kind, event.tool_name or None, preview, event.args, **told)

    def _streamed(self, text: str) -> None:
        if self._after_tools:
            text, self._after_tools = f"\n\n{text}", False
        self._stream_to_all(text)

    def _stream_to_all(self, text: str | None) -> None:
        for name, stream in self._stream.items():
            if stream is not None:
                self._guarded(name, stream, text)

    def _finished(self, event: types.CallFinished) -> None:
        result = types.text_of(event.result.content)
        self._call(
            "tool_progress_callback",
            "tool.completed",
            event.call.name,
            None,
            None,
            duration=event.result.duration_ms / 1000,
            is_error=event.result.status != "ok",
            result=result,
        )
        self._call("tool_complete_callback", event.call.id, event.call.name, event.args, result)

    def _call(self, name: str, *args: Any, **keywords: Any) -> None:
        callback = getattr(self._to, name)
        if callback is not None:
            self._guarded(name, callback, *args, **keywords)

    def _guarded(self, name: str, callback: Callable[..., Any], *args: Any, **keywords: Any) -> None:
        try:
            callback(*args, **keywords)
        except Exception:  # the border to the caller's code
            if name not in self._broken:
                self._broken.add(name)
                log.exception("%s failed; the turn goes on, and further failures of it are not logged", name)


def anyone_listens(options: CallbackOptions) -> bool:
    """Whether an event would reach one of the callbacks."""
    return any(_callbacks(options))


def _preview(call: types.ToolCall) -> str:
    return call.arguments if len(call.arguments) <= 100 else call.arguments[:97] + "..."


class InlineSink:
    """Callbacks on the caller's own loop, between the events."""

    def __init__(self, callbacks: ContractCallbacks) -> None:
        self._callbacks = callbacks

    def emit(self, event: types.Event) -> None:
        self._callbacks.deliver(event)


def inline_sink(options: CallbackOptions, stream_callback: Callable[..., Any] | None) -> InlineSink | None:
    """The sink of a turn on the caller's loop; None when it has no callback."""
    if stream_callback is None and not anyone_listens(options):
        return None
    return InlineSink(ContractCallbacks(options, stream_callback))


class Tee:
    """Everybody hears everything."""

    def __init__(self, *sinks: Sink) -> None:
        self._sinks = sinks

    def emit(self, event: types.Event) -> None:
        for sink in self._sinks:
            sink.emit(event)


class Unheard:
    """Nobody listens, so nothing is made ready for anybody."""

    def emit(self, event: types.Event) -> None:
        """Let it pass."""
