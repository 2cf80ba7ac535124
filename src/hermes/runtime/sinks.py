"""Where the events of a turn go."""

from collections.abc import Callable
from typing import Any

from hermes.runtime.callbacks import ContractCallbacks, anyone_listens
from hermes.runtime.options import CallbackOptions
from hermes.seams import Sink
from hermes.types import Event


class InlineSink:
    """Callbacks on the caller's own loop, between the events."""

    def __init__(self, callbacks: ContractCallbacks) -> None:
        self._callbacks = callbacks

    def emit(self, event: Event) -> None:
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

    def emit(self, event: Event) -> None:
        for sink in self._sinks:
            sink.emit(event)


class Unheard:
    """Nobody listens, so nothing is made ready for anybody."""

    def emit(self, event: Event) -> None:
        """Let it pass."""
