"""`--worktree`: a session works on a branch of its own, in a folder of its own, which goes when nothing is in it."""

from hermes.tools.worktrees.session import in_worktree

__all__ = ["in_worktree"]
