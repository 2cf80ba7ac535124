"""Delegation: tasks that an agent hands to children of its own, which it owns until they have ended."""
