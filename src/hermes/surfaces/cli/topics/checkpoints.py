"""Going back to what was there before the agent changed it.

  hermes chat --checkpoints            take a snapshot before files are changed, in this session
  hermes config set checkpoints.enabled true
  hermes checkpoints list              what there is; /rollback in a conversation brings it back

The project's own git repository is not touched. More: docs/files-and-checkpoints.md.
"""
