"""Delegate until killed: each child that has ended says so on stdout, once its end is stored.

python delegating_parent.py HOME SESSION
"""

import asyncio
import os
import sys
from pathlib import Path

from hermes import AIAgent
from hermes.state import SqliteStore
from hermes.testing.replies import Reply, calls, says
from hermes.types import ChildProgress, Event
from tests.runtime.delegation.scripts import FamilyModel

TASKS = 3


class Ear:
    def emit(self, event: Event) -> None:
        if isinstance(event, ChildProgress) and event.stage == "complete":
            os.write(1, f"{event.child_session_id}\n".encode())


def script(number: int) -> list[Reply]:
    """Children take their time, one after the other, and leave a process behind if they can."""
    work = calls("terminal", command="sleep 3600 & echo begun")
    return [work, says(f"child {number} is done").timed(latency_s=0.05 * number)]


async def main() -> None:
    home, session_id = sys.argv[1:3]
    goals = [f"Task {n}." for n in range(TASKS)]
    model = FamilyModel(
        [calls("delegate_task", tasks=[{"goal": goal} for goal in goals]), says("All done.")],
        {goal: script(number) for number, goal in enumerate(goals)},
    )
    store = SqliteStore(Path(home) / "state.db")
    agent = AIAgent(model=model, store=store, session_id=session_id, cwd=home, sink=Ear())
    os.write(1, b"ready\n")
    await agent.arun_conversation("Go.")
    os.write(1, b"answered\n")
    await asyncio.Event().wait()


asyncio.run(main())
