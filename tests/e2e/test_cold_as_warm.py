"""A process that goes on with a session sends byte for byte what the old one would have sent.

Two worlds play the same fifty turns, with compressions in between: in one of them a single agent lives through all of
them, in the other each turn is the first one of a new agent on a newly opened store.
"""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

from hermes import AIAgent
from hermes.runtime.setup.process import shared
from hermes.seams import ModelRequest
from hermes.state import SqliteStore
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import Reply, calls, says
from tests.models.wire_cases import CHAT

TURNS = 50
COMPRESSED_AFTER = (11, 23, 38)
IN_PROCESSES = TURNS if os.environ.get("HERMES_TEST_FULL") == "1" else 4
_NO_TWO_ALIKE = re.compile(rb"call_[0-9a-zA-Z_]+|\b\d{8}_\d{6}_[0-9a-f]{6}\b|\(\d+\.\d+ s\)")


def script_of(turn: int) -> list[Reply]:
    """What the model does in a turn: it plans, looks into folders with rules of their own, and finishes tasks."""
    task = {"id": str(turn), "content": f"task {turn}", "status": "pending"}
    done = {"id": str(turn - 2), "status": "completed"}
    steps: dict[int, list[Reply]] = {
        0: [calls("todo", todos=[task], merge=True)],
        1: [calls("read_file", path=f"part{turn % 7}/file{turn}.txt")],
        2: [calls("todo", todos=[done], merge=True) + calls("search_files", pattern="nothing", path=f"part{turn % 5}")],
        3: [calls("todo")],
    }
    return [*steps[turn % 4], says(f"That was turn {turn}.")]


def project_in(folder: Path) -> None:
    project = folder / "project"
    for number in range(7):
        (project / f"part{number}").mkdir(parents=True)
        (project / f"part{number}" / "AGENTS.md").write_text(f"Rules of part {number}.")
        for turn in range(TURNS):
            (project / f"part{number}" / f"file{turn}.txt").write_text(f"words {turn} " * 20)
    (project / "AGENTS.md").write_text("Rules of the whole.")


def sent(request: ModelRequest, world: Path) -> bytes:
    """The request as a provider gets it, without what is by nature another one in every run."""
    body = CHAT.offline().body(request).replace(str(world).encode(), b"WORLD")
    return _NO_TWO_ALIKE.sub(b"ID", body)


class World:
    """A home, a project, and a session that goes on in it."""

    def __init__(self, folder: Path, session_id: str = "20260101_000000_abcdef") -> None:
        self.folder, self.project = folder, folder / "project"
        if not self.project.exists():
            project_in(folder)
        self.session_id = session_id
        self.store = SqliteStore(folder / "state.db")
        self._lines: list[Reply] = []

    def make(self) -> tuple[AIAgent, ScriptedModel]:
        model = ScriptedModel(*[lambda _: self._lines.pop(0)] * 1_000)
        agent = AIAgent(
            model=model,
            store=self.store,
            session_id=self.session_id,
            cwd=str(self.project),
            enabled_toolsets=["file", "todo", "session_search", "clarify"],
        )
        return agent, model

    async def turn(self, number: int, agent: AIAgent, model: ScriptedModel) -> list[bytes]:
        """What is sent in a turn, and in the compression that may follow it."""
        model.full_requests.clear()
        self._lines = script_of(number)
        await agent.arun_conversation(f"This is turn {number}.")
        if number in COMPRESSED_AFTER:
            self._lines = [says("## Active Task\nto go on")]
            assert (await agent.acompress())["status"] == "compressed"
        self.session_id = agent.session_id
        return [sent(request, self.folder) for request in model.full_requests]

    async def turn_of_its_own(self, number: int) -> list[bytes]:
        """The same by an agent that knows nothing but the store, which is opened anew."""
        await self.store.close()
        self.store = SqliteStore(self.folder / "state.db")
        agent, model = self.make()
        bodies = await self.turn(number, agent, model)
        await agent.aclose()
        return bodies


def in_a_process(world: World, number: int) -> list[bytes]:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    args = [sys.executable, __file__, str(world.folder), world.session_id, str(number)]
    ran = subprocess.run(args, env=environ, capture_output=True, check=True, timeout=120)
    world.session_id, *lines = ran.stdout.decode().splitlines()
    return [bytes.fromhex(line) for line in lines]


async def test_fifty_turns_of_one_agent_are_those_of_fifty(tmp_path: Path) -> None:
    warm, cold, apart = [World(tmp_path / name) for name in ("warm", "cold", "apart")]
    await apart.store.close()
    living, model = warm.make()
    compared = 0
    for number in range(TURNS):
        bodies = await warm.turn(number, living, model)
        assert bodies == await cold.turn_of_its_own(number), f"the requests of turn {number} differ"
        if number < IN_PROCESSES:
            assert bodies == in_a_process(apart, number), f"the requests of turn {number} differ in another process"
        compared += len(bodies)
    assert compared > TURNS * 2
    await living.aclose()
    await warm.store.close()
    await cold.store.close()
    await shared.close()


async def one_turn(folder: str, session_id: str, number: str) -> None:
    world = World(Path(folder), session_id)
    bodies = await world.turn_of_its_own(int(number))
    await world.store.close()
    sys.stdout.write("\n".join([world.session_id, *(body.hex() for body in bodies)]))


if __name__ == "__main__":
    asyncio.run(one_turn(*sys.argv[1:]))
