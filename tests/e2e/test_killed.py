"""SIGKILL at any moment: what was acknowledged or shown is there, the session goes on, and no effect happens twice."""

import asyncio
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hermes import AIAgent
from hermes.models.endpoint import Endpoint
from hermes.models.http.loop_http import LoopHttp
from hermes.models.wires.chat_completions import chat_completions
from hermes.ops import SessionRecord
from hermes.runtime.requests import NOT_RUN, OUTCOME_UNKNOWN
from hermes.seams import ModelRequest
from hermes.state import SqliteStore
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import Reply, says
from hermes.types import text_of

KILLS = 500 if os.environ.get("HERMES_TEST_FULL") == "1" else 50
CHILD = Path(__file__).with_name("killed_child.py")
ROUNDS_PER_TEST = 25


class Told(NamedTuple):
    """What a child said before it was killed: message rows that are stored, and the events that it showed."""

    rows: set[int]
    events: list[dict[str, Any]]

    def shown(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]


def run_until_killed(home: Path, session_id: str, effects: Path, rng: random.Random) -> Told:
    """Start a child and kill it at a random moment."""
    environ = {**os.environ, "HERMES_HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path)}
    args = [sys.executable, str(CHILD), str(home), session_id, str(effects), str(rng.random())]
    with subprocess.Popen(args, stdout=subprocess.PIPE, env=environ) as child:
        assert child.stdout is not None
        lines = [child.stdout.readline()]
        assert lines[0] == b"ready\n", "the child did not start"
        lines += [child.stdout.readline() for _ in range(rng.randrange(1, 100))]
        child.send_signal(signal.SIGKILL)
        lines += child.stdout.readlines()
    whole = [line for line in lines[1:] if line.endswith(b"\n")]
    rows = {int(row) for line in whole if not line.startswith(b"{") for row in line.split()}
    return Told(rows, [json.loads(line) for line in whole if line.startswith(b"{")])


def check_shown(path: Path, session_id: str, told: Told, turns_before: int) -> int:
    """Everything that was shown is in the file; how many turns that has by now."""
    with closing(sqlite3.connect(path)) as conn:

        def one(sql: str, *values: str) -> Any:
            return conn.execute(sql, values).fetchone()[0]

        turns = "SELECT count(*) FROM messages WHERE session_id = ? AND role = ? AND content LIKE ?"
        stored = int(one(turns, session_id, "user", "go on"))
        assert len(told.shown("turn_started")) <= stored - turns_before
        run = "SELECT count(*) FROM tool_runs WHERE session_id = ? AND call_id = ?"
        for event in told.shown("call_started"):
            assert one(f"{run} AND (started_at > 0 OR status IS NOT NULL)", session_id, event["call"]["id"]) == 1
        result = "SELECT count(*) FROM messages WHERE session_id = ? AND tool_call_id = ? AND content = ?"
        for event in told.shown("call_finished"):
            assert one(result, session_id, event["call"]["id"], event["result"]["content"]) == 1
        finished = [event for event in told.shown("turn_finished") if event["completed"]]
        assert len(finished) <= stored - turns_before
        return stored


def check_told(request: ModelRequest, before: SessionRecord, effects: Path) -> None:
    """The model hears of every open call once: what was started may have happened, and what was not has not."""
    heard: dict[str, list[str | None]] = {OUTCOME_UNKNOWN: [], NOT_RUN: []}
    for unit in request.units:
        for message in unit.messages:
            if message.role == "tool" and (text := text_of(message.content)) in heard:
                heard[text].append(message.tool_call_id)
    for run in before.open_calls:
        assert heard[OUTCOME_UNKNOWN if run.is_started else NOT_RUN].count(run.call.id) == 1
    done = effects.read_text().split()
    keys = {call.id: call.arguments for message in before.messages for call in message.tool_calls}
    for call_id in heard[NOT_RUN]:
        key = json.loads(keys.get(call_id or "", "{}")).get("key")
        assert key not in done, "a call that is told as not run has run"


async def left_over(folder: Path) -> list[str]:
    """Processes that still stand in `folder`, after a while in which they may end."""
    for _ in range(100):
        found = [number for number in os.listdir("/proc") if number.isdigit() and _stands_in(number, folder)]
        if not found:
            break
        await asyncio.sleep(0.1)
    return found


def _stands_in(number: str, folder: Path) -> bool:
    try:
        return Path(f"/proc/{number}/cwd").readlink() == folder
    except OSError:
        return False


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
    turns = dict.fromkeys(("s0", "s1", "s2"), 0)
    for round_ in range(ROUNDS_PER_TEST):
        session_id = f"s{round_ % 3}"
        told = run_until_killed(tmp_path, session_id, effects, rng)
        acknowledged |= told.rows
        turns[session_id] = check_shown(tmp_path / "state.db", session_id, told, turns[session_id])

        store = SqliteStore(tmp_path / "state.db")
        before = await store.load(session_id)
        assert before is not None
        requests: list[ModelRequest] = []

        def answer(request: ModelRequest, seen: list[ModelRequest] = requests) -> Reply:
            seen.append(request)
            return says("I see.")

        agent = AIAgent(model=ScriptedModel(answer), store=store, session_id=session_id, cwd=str(tmp_path))
        result = await agent.arun_conversation("what happened?")
        assert result["completed"], result
        check_body(requests[0])
        check_told(requests[0], before, effects)
        await agent.aclose()

        stored = set()
        for number in range(3):
            record = await store.load(f"s{number}")
            stored |= {message.id for message in record.messages} if record else set()
        assert acknowledged <= stored, f"lost rows: {sorted(acknowledged - stored)}"
        await store.close()

    done = effects.read_bytes().split()
    assert len(done) == len(set(done)), "an effect happened twice"
    assert await left_over(tmp_path) == []
