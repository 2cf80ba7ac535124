"""A process that writes memory until it is done or killed; each write that was acknowledged is a line of its own file.

Run: memory_writer.py HOME NAME COUNT ACKNOWLEDGED
"""

import sys
import time
from pathlib import Path

from hermes.context.memory.entries import EntryRefusal, Operation
from hermes.context.memory.memory_files import MemoryFiles
from hermes.context.memory.memory_history import MemoryWriter


def main(home: str, name: str, count: str, acknowledged: str) -> None:
    """Add entries that stay as long as there is room, and some that are removed again."""
    files = MemoryFiles(Path(home))
    with Path(acknowledged).open("a") as out:
        for number in range(int(count)):
            writer = MemoryWriter(by="agent", at=time.time(), session_id=name)
            entry = f"{name}.{number:05d}"
            try:
                files.write("memory", [Operation(action="add", content=entry)], writer)
            except EntryRefusal:
                own = [one for one in files.entries("memory") if one.startswith(f"{name}.")]
                for one in own[:20]:
                    files.write("memory", [Operation(action="remove", old_text=one)], writer)
                    out.write(f"- {one}\n")
                    out.flush()
                continue
            out.write(f"+ {entry}\n")
            out.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
