"""What the model reads of a memory file: each entry as it is, but for one that gives orders."""

from hermes.context.injection_scan import blocked, scan
from hermes.context.memory.entries import FILES, Target, block
from hermes.context.memory.memory_files import MemoryFiles


def prompt_block(files: MemoryFiles, target: Target) -> str:
    """The block of the system prompt. The file stays as it is, whatever is kept from the model."""
    shown = []
    for entry in files.entries(target):
        finding = scan(entry, "memory")
        shown.append(entry if finding is None else blocked(FILES[target], finding))
    return block(target, shown, files.limits[target])
