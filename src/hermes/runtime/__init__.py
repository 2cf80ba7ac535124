"""The kernel: one agent, one conversation loop, one tool executor."""
