"""The SDK: whether it is there, and its import, which is for the first connection."""

import importlib
import logging
from importlib.util import find_spec

from hermes.errors import MissingPart

INSTALL = "MCP needs the package mcp; install it with: pip install 'hermes-runtime[mcp]'"
_SDK = ("mcp", "mcp.client.streamable_http", "mcp.client.sse", "mcp.client.auth", "mcp.shared.memory")
_LOGGERS = ("mcp", "client")  # the second is that of its sessions
MAX_LOGGED = 500
log = logging.getLogger(__name__)


def is_installed() -> bool:
    """Whether the SDK is there; nothing is imported to find out."""
    return find_spec("mcp") is not None


def load_sdk() -> None:
    """Import the SDK; a second of work, so it is done in a thread, once."""
    if not is_installed():
        raise MissingPart(INSTALL)
    for name in _SDK:
        importlib.import_module(name)
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(one, _IntoOurLog) for one in logger.handlers):
            logger.addHandler(_IntoOurLog())


class _IntoOurLog(logging.Handler):
    """What the SDK has to say, in our log. With no handler at all it would go to stderr, where a screen is drawn, with
    words of servers in it; what comes of a failure is told by whoever wanted something."""

    def emit(self, record: logging.LogRecord) -> None:
        log.log(min(record.levelno, logging.INFO), "%s: %s", record.name, record.getMessage()[:MAX_LOGGED])
