"""What a person should know when a conversation begins: what still runs, and what waits for their yes."""

import os
from pathlib import Path

from hermes.config import paths

MOST = 3


def left_running(home: Path) -> list[str]:
    """A line about programs that a runtime which was killed has left; a look at one small folder where none was."""
    try:
        names = os.listdir(home / "run")  # noqa: PTH208 - names alone
    except OSError:
        return []
    if not any(name.startswith("runtime-") for name in names):
        return []
    from hermes.tools.supervisor.left_processes import told_at_start

    return told_at_start(home / "run")


def start_notices(home: Path) -> list[str]:
    """A line for each proposal that waits, at most `MOST`, and how to decide; nothing is loaded where none does."""
    if not (paths.memories_dir(home) / "proposals.json").exists():
        return []
    from hermes.context.memory.memory_files import MemoryFiles
    from hermes.context.memory.proposals import Proposals
    from hermes.errors import UserError

    try:
        waiting = Proposals(MemoryFiles(home)).waiting()
    except UserError as error:
        return [str(error)]
    if not waiting:
        return []
    more = [f"and {len(waiting) - MOST} more"] if len(waiting) > MOST else []
    lines = [f"memory needs your yes: {one.line}" for one in waiting[:MOST]]
    return [*lines, *more, "decide with: hermes memory review, or /memory review"]
