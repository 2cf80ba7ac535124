"""A process that edits one file for ever, to be killed."""

import asyncio
import sys
from pathlib import Path

from tests.tools.files.workbench import task_in


async def main(folder: Path) -> None:
    async with task_in(folder) as task:
        while True:
            for old, new in (("a", "b"), ("b", "a")):
                sys.stdout.write("editing\n")
                sys.stdout.flush()
                await task.call("write_file", path="a.txt", content=new * 300_000 + "\n")
                line = new * 300_000
                await task.call("patch", mode="replace", path="a.txt", old_string=line, new_string=old * 300_000)


asyncio.run(main(Path(sys.argv[1])))
