"""Letting the agent work beside you, on a branch of its own.

  hermes --worktree                    also with chat -q

Makes .worktrees/hermes-XXXXXXXX with the branch hermes/hermes-XXXXXXXX from where you
are, and works there. At the end both go when nothing is in them that is nowhere else:
no changed file, no commit that no other branch and no remote has. Otherwise they stay,
and you are told where. What git does not keep and the work needs is named in
.worktreeinclude, a path a line: files are copied, folders are linked. Sandboxed
commands can commit there, and cannot change the repository's hooks.
"""
