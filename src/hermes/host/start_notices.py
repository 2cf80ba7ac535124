"""What a person should know when a conversation begins: what waits for their yes."""

from pathlib import Path

from hermes.config import paths

MOST = 3


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
