"""`hermes_state`."""

from hermes.state import SessionDB

__all__ = ["SessionDB"]
