"""Takes snapshots of a project for ever, changing files in between; for a test that kills it at any point."""

import asyncio
import itertools
import sys
import time
from pathlib import Path

from hermes.context.checkpoints import CheckpointLimits, Checkpoints, Touch
from hermes.tools.calling.pool import DaemonPool
from hermes.tools.supervisor.supervisor import ProcessSupervisor


async def main(home: Path, root: Path) -> None:
    checkpoints = Checkpoints(home, ProcessSupervisor(), DaemonPool().run, CheckpointLimits(), time.time)
    for number in itertools.count():
        touch = Touch(
            call_id=f"c{number}",
            turn_id=f"t{number}",
            session_id="s",
            tool="t",
            paths=(),
            cwd=str(root),
            is_command=True,
        )
        await checkpoints.before(touch)
        for file in range(5):
            (root / f"f{(number + file) % 30}").write_text(f"{number}\n" * 500)
        await checkpoints.after(touch)
        print(number, flush=True)  # noqa: T201 - the parent waits for it


asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
