"""What a session keeps beside its transcript: the context engine's seam, and snapshots of the workspace."""

from hermes.seams import ContextEngine

__all__ = ["ContextEngine"]
