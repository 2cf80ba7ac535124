"""What the agent keeps across sessions: two files with their history, proposals that wait, and recall by providers."""
