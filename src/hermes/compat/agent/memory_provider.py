"""`agent.memory_provider` of Hermes Agent: the base of memory providers."""

from hermes.context.memory.provider import MemoryProvider

__all__ = ["MemoryProvider"]
