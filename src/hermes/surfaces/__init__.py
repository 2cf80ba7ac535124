"""The ways in: each maps its own protocol to a turn and events to its own display, and holds no agent logic."""
