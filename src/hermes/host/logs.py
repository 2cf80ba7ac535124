"""Log files under the home: rotating, private, tagged with the session, and without secrets."""

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from hermes.config import paths
from hermes.errors import UserError
from hermes.types import (
    CallFinished,
    CallStarted,
    Commentary,
    MinorEvent,
    ReasoningDelta,
    SessionRotated,
    StatusChanged,
    TextDelta,
    TurnFinished,
)

if TYPE_CHECKING:
    from hermes.config.settings import Settings
    from hermes.redact import Redactor
    from hermes.seams import Sink
    from hermes.types import Event

FORMAT = "%(asctime)s %(levelname)s [%(session)s] %(name)s: %(message)s"
NAMES = {"agent": "agent.log", "errors": "errors.log", "gateway": "gateway.log"}

turn_log = logging.getLogger("hermes.turn")
session_tag: ContextVar[str] = ContextVar("hermes_log_session", default="-")


def start_logging(
    home: Path,
    *,
    level: str = "INFO",
    max_size_mb: float = 5,
    backup_count: int = 3,
    redact: Callable[[str], str] | None = None,
) -> list[logging.Handler]:
    """Send the records of `hermes` to agent.log, and those from WARNING up to errors.log as well.

    `redact` takes secrets out; without one, what looks like a secret by itself is taken out. Nothing is written
    before the first record. A home that cannot be written to is no reason not to run.
    """
    logger = logging.getLogger("hermes")
    logger.setLevel(level)
    logger.propagate = False
    handlers: list[logging.Handler] = []
    try:
        folder = paths.made(paths.logs_dir(home))
    except UserError:
        handlers.append(logging.NullHandler())
    else:
        size = int(max_size_mb * 1_000_000)
        for name, least in (("agent", logging.NOTSET), ("errors", logging.WARNING)):
            file = _PrivateFile(folder / NAMES[name], maxBytes=size, backupCount=backup_count, delay=True)
            file.setLevel(least)
            file.setFormatter(_Formatter(redact or redactor().redact))
            file.addFilter(_tag)
            handlers.append(file)
    for handler in handlers:
        logger.addHandler(handler)
    return handlers


@contextmanager
def logging_as_set(settings: "Settings", tell: Callable[[str], None]) -> Iterator[None]:
    """Keep logs, as the settings want them, for as long as the block lasts.

    `tell` speaks to the person at once: what befell the session file is not left to be found in a log.
    """
    from hermes.config.sections import logging_, security  # paid by whoever logs

    log, wants_redaction = settings.of(logging_.Section), settings.of(security.Section).redact_secrets
    handlers = start_logging(
        settings.home,
        level=log.level,
        max_size_mb=log.max_size_mb,
        backup_count=log.backup_count,
        redact=redactor(settings.environ, settings.secrets).redact if wants_redaction else str,
    )
    # This module alone: what fails in the background of the store is no matter for the screen.
    store_log, told = logging.getLogger("hermes.state.sqlite.write_file"), _Told(tell)
    store_log.addHandler(told)
    try:
        yield
    finally:
        store_log.removeHandler(told)
        stop_logging(handlers)


def stop_logging(handlers: list[logging.Handler]) -> None:
    """Close what `start_logging` opened."""
    for handler in handlers:
        logging.getLogger("hermes").removeHandler(handler)
        handler.close()


def log_fault(home: Path, error: Exception) -> Path | None:
    """Write a fault of ours with its traceback to errors.log; the file, or None when that failed too."""
    handlers = start_logging(home)
    try:
        logging.getLogger("hermes").critical("fault", exc_info=error)
    finally:
        stop_logging(handlers)
    file = paths.logs_dir(home) / NAMES["errors"]
    return file if file.exists() else None


class Logged:
    """`Sink` that writes a turn's calls, remarks and end to the log, and hands every event on to `inner`."""

    def __init__(self, inner: "Sink") -> None:
        self._inner = inner

    def emit(self, event: "Event") -> None:
        self._inner.emit(event)
        match event:
            case CallFinished(call=call, result=result):
                turn_log.info("%s: %s, %.1f s", call.name, result.status, (result.duration_ms or 0) / 1000)
            case StatusChanged(kind=kind, message=message):
                turn_log.info("%s: %s", kind, message)
            case TurnFinished():
                turn_log.info("the turn ended: %s, %s model calls", event.exit_reason, event.api_calls)
            case TextDelta() | ReasoningDelta() | Commentary() | CallStarted() | SessionRotated() | MinorEvent():
                return  # words are in the session, not in the log; a call is told when it has ended
            case _:
                assert_never(event)


class _PrivateFile(RotatingFileHandler):
    """A rotating file that nobody but its owner reads."""

    def _open(self):  # type: ignore[no-untyped-def]  # the base class names a private type
        handle = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        return os.fdopen(handle, self.mode, encoding="utf-8", errors="replace")

    def close(self) -> None:
        """Lines that waited for room on a full disk go now, and take nobody with them."""
        try:
            super().close()
        except OSError:  # the file is closed all the same
            return

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the base class's name
        """A full disk loses a log line; it never speaks into the user's terminal."""


class _Told(logging.Handler):
    """Errors, in words for a person."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.ERROR)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        self._tell(record.getMessage())


class _Formatter(logging.Formatter):
    """One record a line, tracebacks indented below it, with secrets taken out of the whole."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__(FORMAT)
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        return self._redact(super().format(record)).replace("\n", "\n    ")


def _tag(record: logging.LogRecord) -> bool:
    if not hasattr(record, "session"):
        record.session = session_tag.get()
    return True


def redactor(environ: Mapping[str, str] | None = None, secrets: Mapping[str, str] | None = None) -> "Redactor":
    """A redactor that knows the values of .env, and those of the environment whose names tell that they are secret."""
    from hermes.redact import Redactor  # compiling its patterns is left to who logs
    from hermes.tools.environments.command_env import is_secret_name

    made = Redactor()
    made.register_all({**(environ or {}), **(secrets or {})}, is_secret_name)
    return made
