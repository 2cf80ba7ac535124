"""Compression and the death of processes, and two processes at one session: one line of sessions, nothing lost."""

import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path

from hermes import AIAgent
from hermes.context.marks import PREFIX
from hermes.ops import SessionRecord
from hermes.state import SessionDB, SqliteStore
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import says
from hermes.types import text_of
from tests.e2e.test_killed import check_body

KILLS = 200 if os.environ.get("HERMES_TEST_FULL") == "1" else 20
CHILD = Path(__file__).with_name("compressing_child.py")


def started(home: Path, session_id: str, rounds: int) -> "subprocess.Popen[bytes]":
    environ = {**os.environ, "HERMES_HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path)}
    args = [sys.executable, str(CHILD), str(home), session_id, str(rounds)]
    return subprocess.Popen(args, stdout=subprocess.PIPE, env=environ)


def run_until_killed(home: Path, session_id: str, rng: random.Random) -> list[str]:
    """The ids of the sessions that the child had gone on with."""
    with started(home, session_id, 1_000) as child:
        assert child.stdout is not None
        lines = [child.stdout.readline()]
        assert lines[0] == b"ready\n", "the child did not start"
        lines += [child.stdout.readline() for _ in range(rng.randrange(3))]
        time.sleep(rng.random() / 20)  # somewhere in a turn, or in the compression after five of them
        child.send_signal(signal.SIGKILL)
        lines += child.stdout.readlines()
    return [line.split()[1].decode() for line in lines[1:] if line.endswith(b"\n")]


def check_line(home: Path, root: str, acknowledged: list[str]) -> str:
    """One unbroken line from `root`: every session of it complete, all but the last one closed. Its tip."""
    with SessionDB(home / "state.db") as db:
        line = db.get_compression_lineage(root)
        assert line[0] == root
        assert set(acknowledged) <= set(line), "a session that was acknowledged is there"
        with closing(sqlite3.connect(home / "state.db")) as conn:
            children = conn.execute("SELECT parent_session_id, count(*) FROM sessions GROUP BY 1").fetchall()
            assert all(count == 1 for parent, count in children if parent is not None), "no session has two tips"
        for parent, child in pairwise(line):
            assert db.get_session(parent)["end_reason"] == "compression"  # type: ignore[index]  # it is there
            begins = [str(message["content"]) for message in db.get_messages(child)]
            assert any(text.startswith(PREFIX) for text in begins), "a child is complete or not there at all"
            assert any(text.startswith("question") for text in begins)
        assert db.get_session(line[-1])["end_reason"] != "compression"  # type: ignore[index]
        assert db.resolve_resume_session_id(root) == line[-1]
        return line[-1]


async def test_sigkill_leaves_the_parent_as_it_was_or_a_complete_child(tmp_path: Path) -> None:
    rng = random.Random(7)
    acknowledged: list[str] = []
    for _ in range(KILLS):
        acknowledged += run_until_killed(tmp_path, "root", rng)
        tip = check_line(tmp_path, "root", acknowledged)
    assert len(acknowledged) > KILLS // 4

    model = ScriptedModel(says("I am still here."))
    store = SqliteStore(tmp_path / "state.db")
    agent = AIAgent(model=model, store=store, session_id="root", cwd=str(tmp_path))
    result = await agent.arun_conversation("and now?")
    assert (result["final_response"], result["session_id"]) == ("I am still here.", tip)
    check_body(model.full_requests[0])
    await agent.aclose()
    await store.close()


def test_two_processes_that_compress_one_session_make_one_line(tmp_path: Path) -> None:
    with started(tmp_path, "root", 12) as one, started(tmp_path, "root", 12) as two:
        told = [line for child in (one, two) if child.stdout is not None for line in child.stdout.readlines()]
        assert (one.wait(60), two.wait(60)) == (0, 0)
    ended = [line.split() for line in told if line != b"ready\n"]
    assert len(ended) == 24
    acknowledged = [name.decode() for status, name in ended if status == b"compressed"]
    assert len(set(acknowledged)) == len(acknowledged), "nobody was told of a child that another made"
    check_line(tmp_path, "root", acknowledged)


class Raced(SqliteStore):
    """Somebody else does something just after a session was read."""

    meanwhile: Callable[[], Awaitable[object]] | None = None

    async def load(self, session_id: str, after: int = 0) -> SessionRecord | None:
        record = await super().load(session_id, after)
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        return record


async def test_a_session_that_is_compressed_while_it_is_looked_for_is_not_opened_again(tmp_path: Path) -> None:
    store, raced = SqliteStore(tmp_path / "state.db"), Raced(tmp_path / "state.db")
    turns = [says("an answer " + "v" * 400)] * 6
    notes = says("## Active Task\nboth")
    first = AIAgent(
        model=ScriptedModel(*turns, notes, *turns, notes), store=store, session_id="root", cwd=str(tmp_path)
    )
    for _ in range(6):
        await first.arun_conversation("question " + "w" * 400)
    compressed = [(await first.acompress())["session_id"]]
    for _ in range(6):
        await first.arun_conversation("question " + "w" * 400)

    async def compress_again() -> None:
        compressed.append((await first.acompress())["session_id"])

    second = AIAgent(model=ScriptedModel(says("fine")), store=raced, session_id="root", cwd=str(tmp_path))
    raced.meanwhile = compress_again
    result = await second.arun_conversation("and now?")

    assert result["session_id"] == compressed[-1]
    assert check_line(tmp_path, "root", compressed) == compressed[-1]
    for agent in (first, second):
        await agent.aclose()
    for each in (store, raced):
        await each.close()


async def test_a_line_that_was_damaged_into_a_circle_ends(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    turns = [says("an answer " + "v" * 400)] * 6
    model = ScriptedModel(*turns, says("## Active Task\nboth"), says("fine"))
    agent = AIAgent(model=model, store=store, session_id="root", cwd=str(tmp_path))
    for _ in range(6):
        await agent.arun_conversation("question " + "w" * 400)
    child = (await agent.acompress())["session_id"]
    with closing(sqlite3.connect(tmp_path / "state.db")) as conn, conn:
        conn.execute("UPDATE sessions SET parent_session_id = ? WHERE id = 'root'", (child,))
        conn.execute("UPDATE sessions SET end_reason = 'compression', ended_at = started_at")
    async with asyncio.timeout(10):
        result = await agent.arun_conversation("and now?")
    assert result["final_response"] == "fine"
    await agent.aclose()
    await store.close()


async def test_of_two_agents_that_compress_at_once_one_does_it(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    turns = [says("an answer " + "v" * 400)] * 6
    notes = says("## Active Task\nboth").timed(latency_s=0.05)
    first = AIAgent(model=ScriptedModel(*turns, notes), store=store, session_id="root", cwd=str(tmp_path))
    for number in range(6):
        await first.arun_conversation(f"question {number} " + "w" * 400)
    model = ScriptedModel(*[lambda request: says("fine") if request.tools else notes] * 2)
    second = AIAgent(model=model, store=store, session_id="root", cwd=str(tmp_path))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(agent.acompress()) for agent in (first, second)]
    answers = [task.result() for task in tasks]

    assert sorted(answer["status"] for answer in answers) == ["compressed", "unchanged"]
    (winner,) = [answer["session_id"] for answer in answers if answer["status"] == "compressed"]
    (reason,) = [answer["reason"] for answer in answers if answer["status"] == "unchanged"]
    assert reason.startswith("session 'root' is in use by another agent of this process")
    assert check_line(tmp_path, "root", [winner]) == winner
    if answers[1]["status"] == "unchanged":
        result = await second.arun_conversation("and you?")
        assert (result["session_id"], result["final_response"]) == (winner, "fine")
        record = await store.load(winner)
        assert record is not None
        assert text_of(record.messages[-1].content) == "fine"
    await first.aclose()
    await second.aclose()
    await store.close()
