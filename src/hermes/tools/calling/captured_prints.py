"""What a handler prints goes to the log, not into a terminal that is being drawn or a protocol on stdout."""

import logging
import sys
import threading
from contextvars import ContextVar
from typing import Any, TextIO

log = logging.getLogger("hermes.tools.calling.captured_prints")

_tool: ContextVar[str | None] = ContextVar("hermes_printing_tool", default=None)
_LINE_CHARS = 2000


class _Router:
    """Stands for a standard stream: text written inside a handler is logged, all else passes through."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        tool = _tool.get()
        if tool is None:
            return self._stream.write(text)
        if text.strip():
            token = _tool.set(None)  # a log handler may write to this very stream
            try:
                log.info("tool %r printed: %s", tool, text.rstrip()[:_LINE_CHARS])
            finally:
                _tool.reset(token)
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Installed:
    def __init__(self) -> None:
        self.lock = threading.Lock()  # guards the rest and the two streams of sys
        self.users = 0
        self.streams: tuple[Any, Any] = (None, None)
        self.routers: tuple[Any, Any] = (None, None)  # of these streams


_installed = _Installed()


class quiet_prints:  # noqa: N801 - reads as the verb it is
    """While it lasts, what is printed in this context belongs to `tool`. Nests and overlaps freely."""

    __slots__ = ("_token", "_tool")

    def __init__(self, tool: str) -> None:
        self._tool = tool

    def __enter__(self) -> None:
        with _installed.lock:
            _installed.users += 1
            if _installed.users == 1:
                streams = (sys.stdout, sys.stderr)
                if streams != _installed.streams:
                    _installed.streams = streams
                    _installed.routers = (_Router(sys.stdout), _Router(sys.stderr))
                sys.stdout, sys.stderr = _installed.routers
        self._token = _tool.set(self._tool)

    def __exit__(self, *_: object) -> None:
        _tool.reset(self._token)
        with _installed.lock:
            _installed.users -= 1
            if _installed.users:
                return
            # Only what is still ours is put back: somebody else may have replaced a stream meanwhile.
            if sys.stdout is _installed.routers[0]:
                sys.stdout = _installed.streams[0]
            if sys.stderr is _installed.routers[1]:
                sys.stderr = _installed.streams[1]
