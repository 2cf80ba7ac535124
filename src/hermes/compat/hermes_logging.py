"""`hermes_logging`: loggers below ours, so that what a plugin logs is in the home's log."""

import logging


def get_logger(name: str) -> logging.Logger:
    """The logger of a plugin."""
    return logging.getLogger(f"hermes.plugins.{name.removeprefix('hermes_plugins.')}")


def setup_logging(**_: object) -> None:
    """Nothing: the runtime sets logging up by itself."""


__all__ = ["get_logger", "setup_logging"]
