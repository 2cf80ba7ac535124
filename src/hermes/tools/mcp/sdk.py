"""The SDK: whether it is there, and its import, which is for the first connection."""

import importlib
import logging
from importlib.util import find_spec

from hermes.errors import MissingPart

INSTALL = "MCP needs the package mcp; install it with: pip install 'hermes-runtime[mcp]'"
_SDK = ("mcp", "mcp.client.streamable_http", "mcp.client.sse", "mcp.client.auth", "mcp.shared.memory")
_LOGGERS = ("mcp", "client")  # the second is that of its sessions


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
        if not logger.hasHandlers():
            # Nobody takes its records, so they would go to stderr, where a screen is drawn, with words of servers in
            # them. What comes of a failure is told by whoever wanted something.
            logger.setLevel(logging.CRITICAL + 1)
