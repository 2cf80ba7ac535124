"""Where the events of a turn go."""

from hermes.runtime.callbacks import ContractCallbacks
from hermes.seams import Sink
from hermes.types import Event


class InlineSink:
    """Callbacks on the caller's own loop; one that raises ends the turn through the caller's await."""

    def __init__(self, callbacks: ContractCallbacks) -> None:
        self._callbacks = callbacks

    def emit(self, event: Event) -> None:
        self._callbacks.deliver(event)


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
