"""Compress a session, over and over, until killed: each id that the agent was told to go on with is told on a pipe.

python compressing_child.py HOME SESSION ROUNDS
"""

import asyncio
import os
import sys
from pathlib import Path

from hermes import AIAgent
from hermes.errors import SessionInUse
from hermes.seams import ModelRequest
from hermes.state import SqliteStore
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import Reply, says


async def ask(agent: AIAgent, question: str) -> None:
    while True:
        try:
            await agent.arun_conversation(question)
        except SessionInUse:  # by another child
            await asyncio.sleep(0.002)
        else:
            return


def answer(request: ModelRequest) -> Reply:
    return says("an answer " + "v" * 400) if request.tools else says("## Active Task\nto be killed")


async def main() -> None:
    home, session_id, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    store = SqliteStore(home / "state.db")
    agent = AIAgent(model=ScriptedModel(*[answer] * 10_000), store=store, session_id=session_id, cwd=str(home))
    os.write(1, b"ready\n")
    for number in range(rounds):
        for _ in range(5):
            await ask(agent, f"question {number} " + "w" * 400)
        done = await agent.acompress()
        os.write(1, f"{done['status']} {agent.session_id}\n".encode())
    await agent.aclose()
    await store.close()


asyncio.run(main())
