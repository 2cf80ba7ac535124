"""SIGKILL at any moment: what was acknowledged is there, the session goes on, and no effect happens twice."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hermes import AIAgent
from hermes.models.chat_completions import chat_completions
from hermes.models.endpoint import Endpoint
from hermes.models.loop_http import LoopHttp
from hermes.runtime.requests import OUTCOME_UNKNOWN
from hermes.seams import ModelRequest
from hermes.state import SqliteStore
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import Reply, says
from hermes.types import text_of

KILLS = 500 if os.environ.get("HERMES_TEST_FULL") == "1" else 50
CHILD = Path(__file__).with_name("killed_child.py")
ROUNDS_PER_TEST = 25


def run_until_killed(home: Path, session_id: str, effects: Path, rng: random.Random) -> set[int]:
    """Start a child, kill it at a random moment; the message rows that it had been told are stored."""
    environ = {**os.environ, "HERMES_HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path)}
    args = [sys.executable, str(CHILD), str(home), session_id, str(effects), str(rng.random())]
    with subprocess.Popen(args, stdout=subprocess.PIPE, env=environ) as child:
        assert child.stdout is not None
        lines = [child.stdout.readline()]
        assert lines[0] == b"ready\n", "the child did not start"
        lines += [child.stdout.readline() for _ in range(rng.randrange(1, 40))]
        child.send_signal(signal.SIGKILL)
        lines += child.stdout.readlines()
    whole = [line for line in lines[1:] if line.endswith(b"\n")]
    return {int(row) for line in whole for row in line.split()}


def check_body(request: ModelRequest) -> None:
    """The request is one that a provider takes: every call has its one result, in order."""
    open_ids: list[str] = []
    for unit in request.units:
        for message in unit.messages:
            if message.role == "tool":
                assert open_ids.pop(0) == message.tool_call_id
            else:
                assert not open_ids
            open_ids += [call.id for call in message.tool_calls]
    assert not open_ids
    chat_completions(Endpoint(base_url="http://127.0.0.1", model="m"), LoopHttp()).body(request)


@pytest.mark.parametrize("part", range(max(1, KILLS // ROUNDS_PER_TEST)))
async def test_nothing_acknowledged_is_lost_and_nothing_runs_twice(part: int, tmp_path: Path) -> None:
    rng = random.Random(part)
    effects = tmp_path / "effects"
    effects.touch()
    acknowledged: set[int] = set()
    for round_ in range(ROUNDS_PER_TEST):
        session_id = f"s{round_ % 3}"
        acknowledged |= run_until_killed(tmp_path, session_id, effects, rng)

        store = SqliteStore(tmp_path / "state.db")
        before = await store.load(session_id)
        assert before is not None
        uncertain = [run.call.id for run in before.open_calls]
        requests: list[ModelRequest] = []

        def answer(request: ModelRequest, seen: list[ModelRequest] = requests) -> Reply:
            seen.append(request)
            return says("I see.")

        agent = AIAgent(model=ScriptedModel(answer), store=store, session_id=session_id, cwd=str(tmp_path))
        result = await agent.arun_conversation("what happened?")
        assert result["completed"], result
        check_body(requests[0])
        told = [m.tool_call_id for u in requests[0].units for m in u.messages if text_of(m.content) == OUTCOME_UNKNOWN]
        assert all(told.count(one) == 1 for one in uncertain)
        await agent.aclose()

        stored = set()
        for number in range(3):
            record = await store.load(f"s{number}")
            stored |= {message.id for message in record.messages} if record else set()
        assert acknowledged <= stored, f"lost rows: {sorted(acknowledged - stored)}"
        await store.close()

    done = effects.read_bytes().split()
    assert len(done) == len(set(done)), "an effect happened twice"
