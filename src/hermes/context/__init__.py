"""What a session keeps beside its transcript: the context engine, and snapshots of the workspace."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermes.context.compressor import ContextCompressor
    from hermes.context.engine import ContextEngine

__all__ = ["ContextCompressor", "ContextEngine"]
_PLACES = {"ContextCompressor": "hermes.context.compressor", "ContextEngine": "hermes.context.engine"}


def __getattr__(name: str) -> Any:
    """The two public names, each loaded by who asks for it: a start pays for neither."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
