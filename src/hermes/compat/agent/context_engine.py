"""`agent.context_engine`: the base of context engines."""

from hermes.context.engine import ContextEngine

__all__ = ["ContextEngine"]
