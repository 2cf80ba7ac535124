"""What a handler prints goes to the log, not into a terminal that is being drawn or a protocol on stdout."""

import contextlib
import logging
import sys
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, TextIO

log = logging.getLogger("hermes.tools.prints")

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
        self.streams: tuple[TextIO, TextIO] | None = None
        self.routers: tuple[Any, Any] | None = None


_installed = _Installed()


@contextlib.contextmanager
def contained_prints() -> Iterator[None]:
    """While it lasts, `quiet_prints` blocks are silent. Nests and overlaps freely."""
    with _installed.lock:
        _installed.users += 1
        if _installed.users == 1:
            _installed.streams = (sys.stdout, sys.stderr)
            _installed.routers = (_Router(sys.stdout), _Router(sys.stderr))
            sys.stdout, sys.stderr = _installed.routers
    try:
        yield
    finally:
        with _installed.lock:
            _installed.users -= 1
            if _installed.users == 0 and _installed.streams is not None and _installed.routers is not None:
                # Only what is still ours is put back: somebody else may have replaced a stream meanwhile.
                if sys.stdout is _installed.routers[0]:
                    sys.stdout = _installed.streams[0]
                if sys.stderr is _installed.routers[1]:
                    sys.stderr = _installed.streams[1]
                _installed.streams = _installed.routers = None


@contextlib.contextmanager
def quiet_prints(tool: str) -> Iterator[None]:
    """In this context, what is printed belongs to `tool`."""
    token = _tool.set(tool)
    try:
        yield
    finally:
        _tool.reset(token)
