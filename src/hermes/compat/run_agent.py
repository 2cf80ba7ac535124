"""`run_agent`."""

from hermes.runtime.agent import AIAgent

__all__ = ["AIAgent"]
