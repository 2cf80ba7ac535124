"""Whether a process is one of our commands: what a keeper started, or something below that."""

import os
from pathlib import Path

from hermes.tools.supervisor.keeper import tree
from hermes.tools.supervisor.left_processes import is_confined, is_keeper

_DEEPEST = 1_000


def descends_from_keeper(pid: int) -> bool:
    """Whether a keeper is above `pid`, or it is confined or marked as commands of ours are.

    A process whose ancestors cannot be read counts as one: where nothing is known, nothing is allowed. Where there is
    no /proc nobody can tell, and the answer is no.
    """
    if not Path("/proc/self/stat").exists():
        return False
    tells_ours = not is_confined(os.getpid())  # in some containers every process looks like that
    for _ in range(_DEEPEST):
        if pid <= 1:
            return False
        found = tree.look(pid)
        if found is None:
            return True
        if is_keeper(pid) or tree.mark_of(pid) or (tells_ours and is_confined(pid)):
            return True
        pid = found.parent
    return True
