"""SIGKILL of a parent with running children: no process is left, and what each child came to is delivered once."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hermes import AIAgent
from hermes.state import SqliteStore
from hermes.state.queries import SessionFilter
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import says

KILLS = 200 if os.environ.get("HERMES_TEST_FULL") == "1" else 10
PARENT = Path(__file__).with_name("delegating_parent.py")
ROOT = PARENT.parents[2]


def run_until_killed(home: Path, session_id: str, after_s: float) -> list[str]:
    """Start a parent and kill it so long after it began to delegate; what it said."""
    environ = {**os.environ, "HERMES_HOME": str(home), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(PARENT), str(home), session_id]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ, cwd=home) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "ready\n"
        time.sleep(after_s)  # the moment is the point, not a wait for anything
        parent.send_signal(signal.SIGKILL)
        return parent.stdout.read().split()


def processes_in(folder: Path) -> list[int]:
    """Processes whose working directory is there."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "cwd") == str(folder):
                found.append(int(entry.name))
        except OSError:
            continue  # gone, or somebody else's
    return found


def is_empty_soon(folder: Path, limit_s: float = 10.0) -> bool:
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        if not processes_in(folder):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("place", range(KILLS))
async def test_what_children_came_to_survives_their_parent(place: int, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    session_id = f"killed-{place}"
    said = run_until_killed(home, session_id, random.Random(place).uniform(0.05, 0.9))
    assert is_empty_soon(home)
    store = SqliteStore(home / "state.db")
    try:
        if store.queries.count_sessions(SessionFilter(ids=[session_id])) == 0:
            return  # nothing had begun
        agent = AIAgent(model=ScriptedModel(says("Back."), says("Again.")), store=store, session_id=session_id)
        done = await agent.arun_conversation("What came of it?")
        again = await agent.arun_conversation("And now?")
        delivered = _delivered(again)
        ended = [child for child in said if child not in ("ready", "answered")]
        for child in ended:
            assert delivered.count(child) == 1, (child, again["messages"])
        children = store.queries.sessions(SessionFilter(equal={"parent_session_id": session_id}))
        assert all(row["ended_at"] for row in children)
        assert sorted(delivered) == sorted(set(delivered))
        assert done["final_response"] == "Back."
        await agent.aclose()
    finally:
        await store.close()


def _delivered(result: dict[str, Any]) -> list[str]:
    """The children whose results are in the conversation, as often as they are."""
    found = []
    for message in result["messages"]:
        if message["role"] == "tool" and message["content"].startswith("{"):
            found += [one["child_session_id"] for one in json.loads(message["content"]).get("results", ())]
    return found
