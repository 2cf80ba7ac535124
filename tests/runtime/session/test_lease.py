"""One owner for a session: who comes second is told, and a turn whose session was taken over writes nothing more."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hermes import AIAgent
from hermes.errors import LeaseLost, SessionInUse, StoreError
from hermes.ops import ApprovalRecorded, LeaseHeld, LeaseTaken, SessionRecord
from hermes.runtime.requests import OUTCOME_UNKNOWN
from hermes.runtime.session.lease import SessionLease
from hermes.seams import Effects
from hermes.state import SqliteStore
from hermes.state.sqlite.examine import faults_of
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import calls, says
from hermes.tools.registry import registry, tool_result
from hermes.tools.traits import Traits
from hermes.types import text_of


class Slow:
    """A tool that runs until it is let go."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()

    async def __call__(self, args: dict[str, Any], **_: Any) -> str:
        self.begun.set()
        await self.go_on.wait()
        return tool_result(done=True)


@pytest.fixture
def slow() -> Iterator[Slow]:
    made = Slow()
    schema = {"name": "slow", "description": "Wait.", "parameters": {"type": "object", "properties": {}}}
    traits = Traits(effects=lambda *_: Effects())
    registry.register(name="slow", toolset="testing", schema=schema, handler=made, is_async=True, traits=traits)
    yield made
    registry.deregister("slow")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    made = SqliteStore(tmp_path / "state.db")
    yield made
    await made.close()


def agent_of(store: SqliteStore, *script: Any, **keywords: Any) -> AIAgent:
    model = ScriptedModel(*script)
    return AIAgent(model=model, store=store, session_id="s", cwd=str(store.path.parent), **keywords)


async def said_in(store: SqliteStore, session_id: str = "s") -> list[str]:
    record = await store.load(session_id)
    return [f"{message.role}: {text_of(message.content)}" for message in record.messages] if record else []


def leases(store: SqliteStore) -> list[Any]:
    return store.read(lambda conn: conn.execute("SELECT session_id FROM leases").fetchall())


def forget_renewals(store: SqliteStore) -> None:
    """As if nothing had been heard from the owner for a long time."""
    with closing(sqlite3.connect(store.path, isolation_level=None)) as conn:
        conn.execute("UPDATE leases SET renewed_at = 1")


def put_lease(store: SqliteStore, owner: str, age_s: float) -> None:
    at = time.time() - age_s
    store.write(lambda conn: conn.execute("INSERT INTO leases VALUES (1, 's', ?, ?, ?)", (owner, at, at)))


async def test_a_second_agent_is_told_who_has_the_session_and_stores_nothing(store: SqliteStore, slow: Slow) -> None:
    first = agent_of(store, calls("slow"), says("done"))
    second = agent_of(store, says("never"), says("my turn"))
    async with asyncio.TaskGroup() as group:
        turn = group.create_task(first.arun_conversation("go"))
        await slow.begun.wait()
        before = await said_in(store)
        with pytest.raises(SessionInUse, match=r"'s' is in use by another agent of this process \(pid \d+\) since \d"):
            await second.arun_conversation("me, too")
        assert await said_in(store) == before
        slow.go_on.set()
    assert turn.result()["final_response"] == "done"
    assert (await second.arun_conversation("and now?"))["final_response"] == "never"
    assert [line for line in await said_in(store) if OUTCOME_UNKNOWN in line or "late" in line] == []
    assert leases(store) == []


async def test_a_turn_that_was_taken_over_stops_and_writes_nothing_more(store: SqliteStore, slow: Slow) -> None:
    first = agent_of(store, calls("slow"), says("never said"))
    second = agent_of(store, says("I went on"))
    async with asyncio.TaskGroup() as group:
        turn = group.create_task(first.arun_conversation("go"))
        await slow.begun.wait()
        forget_renewals(store)
        assert (await second.arun_conversation("what happened?"))["completed"]
        after = await said_in(store)
        slow.go_on.set()
    result = turn.result()
    assert (result["turn_exit_reason"], result["failed"], result["completed"]) == ("session_lost", True, False)
    assert "taken over by another process, which is done with it" in result["error"]
    assert await said_in(store) == after
    assert (await first.arun_conversation("again"))["completed"], "it goes on with what the other has said"


async def test_a_loss_that_a_tool_runs_into_stops_the_turn_as_well(store: SqliteStore, slow: Slow) -> None:
    decision = ApprovalRecorded(session_id="s", route="foreground", tool="slow", action="wait", verdict="allow")

    async def recorded(args: dict[str, Any], **more: Any) -> str:
        await slow(args, **more)
        await (await agent._assembled()).store.commit(decision)
        return "{}"

    schema = {"name": "recorded", "description": "Wait.", "parameters": {"type": "object", "properties": {}}}
    registry.register(name="recorded", toolset="testing", schema=schema, handler=recorded, is_async=True)
    agent = agent_of(store, calls("recorded"), says("never said"))
    try:
        async with asyncio.TaskGroup() as group:
            turn = group.create_task(agent.arun_conversation("go"))
            await slow.begun.wait()
            forget_renewals(store)
            await agent_of(store, says("I went on")).arun_conversation("what happened?")
            after = await said_in(store)
            slow.go_on.set()
    finally:
        registry.deregister("recorded")
    assert turn.result()["turn_exit_reason"] == "session_lost"
    assert await said_in(store) == after


async def test_a_turn_never_goes_on_in_a_session_that_was_compressed_under_it(store: SqliteStore, slow: Slow) -> None:
    talk = [says("an answer " + "v" * 400)] * 6
    first = agent_of(store, *talk, calls("slow"), says("never said"))
    for number in range(6):
        await first.arun_conversation(f"question {number} " + "w" * 400)
    second = agent_of(store, says("## Active Task\nto go on"))
    async with asyncio.TaskGroup() as group:
        turn = group.create_task(first.arun_conversation("go"))
        await slow.begun.wait()
        refused = await second.acompress()
        assert refused["status"] == "unchanged"
        assert "is in use by" in refused["reason"]
        forget_renewals(store)
        done = await second.acompress()
        after = await said_in(store)
        slow.go_on.set()
    assert done["status"] == "compressed"
    assert turn.result()["turn_exit_reason"] == "session_lost"
    assert f"goes on as {done['session_id']!r}" in turn.result()["error"]
    assert await said_in(store) == after
    assert leases(store) == []


class Raced(SqliteStore):
    """Somebody else does something just after a session was read."""

    meanwhile: Callable[[], Awaitable[object]] | None = None

    async def load(self, session_id: str, after: int = 0) -> SessionRecord | None:
        record = await super().load(session_id, after)
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        return record


async def test_a_turn_begins_anew_when_somebody_was_quicker(store: SqliteStore, tmp_path: Path) -> None:
    first = agent_of(store, says("one"), says("two"))
    await first.arun_conversation("a")
    raced = Raced(tmp_path / "state.db")
    model = ScriptedModel(says("three"))
    second = AIAgent(model=model, store=raced, session_id="s", cwd=str(tmp_path))
    await second._assembled()
    raced.meanwhile = lambda: first.arun_conversation("b")
    await second.arun_conversation("c")
    assert [text_of(m.content) for m in model.requests[0]] == ["a", "one", "b", "two", "c"]
    assert await said_in(store) == [
        "user: a",
        "assistant: one",
        "user: b",
        "assistant: two",
        "user: c",
        "assistant: three",
    ]
    await raced.close()


@pytest.mark.parametrize("how", ["interrupt", "cancel"])
async def test_however_a_turn_ends_the_session_is_free(store: SqliteStore, slow: Slow, how: str) -> None:
    agent = agent_of(store, calls("slow"))
    task = asyncio.create_task(agent.arun_conversation("go"))
    await slow.begun.wait()
    if how == "interrupt":
        agent.interrupt()
    else:
        task.cancel()
    await asyncio.wait([task])
    assert leases(store) == []
    assert (await agent_of(store, says("free")).arun_conversation("next"))["final_response"] == "free"


async def test_an_agent_takes_its_own_session_again_after_it_could_not_give_it_back(
    store: SqliteStore, tmp_path: Path
) -> None:
    agent = agent_of(store, says("one"), says("two"))

    class Full(SqliteStore):
        """Its disk is full for a while."""

        fails = False

        def commit(self, *ops: Any) -> Any:
            if self.fails:
                raise StoreError("the write failed: disk full")
            return super().commit(*ops)

    full = Full(tmp_path / "state.db")

    def answer(_: Any) -> Any:
        full.fails = True
        return says("lost")

    agent = AIAgent(model=ScriptedModel(answer, says("two")), store=full, session_id="s", cwd=str(tmp_path))
    assert (await agent.arun_conversation("a"))["failed"]
    full.fails = False
    assert leases(full) == [("s",)]
    assert (await agent.arun_conversation("b"))["final_response"] == "two"
    assert leases(full) == []
    await full.close()


async def test_a_lease_is_renewed_while_a_turn_is_silent_and_its_loss_is_told() -> None:
    renewed: asyncio.Queue[LeaseHeld] = asyncio.Queue()
    lost = asyncio.Event()
    is_lost = False

    async def renew(op: LeaseHeld) -> None:
        renewed.put_nowait(op)
        if is_lost:
            raise LeaseLost("gone")

    lease = SessionLease(renew, every_s=0.001)
    lease.on_lost = lost.set
    op = lease.taking("s", 0)
    lease.taken(op)
    async with asyncio.timeout(30):
        assert [await renewed.get() for _ in range(3)] == [LeaseHeld("s", op.fence, renews=True)] * 3
        is_lost = True
        await lost.wait()
    assert (lease.fence, str(lease.lost)) == (0, "gone")


async def test_a_taken_session_stops_a_turn_that_only_waits(store: SqliteStore, slow: Slow) -> None:
    agent = agent_of(store, calls("slow"), says("never said"))
    async with asyncio.TaskGroup() as group:
        turn = group.create_task(agent.arun_conversation("go"))
        await slow.begun.wait()
        forget_renewals(store)
        await store.commit(LeaseTaken(session_id="s", fence=7, message_count=2))
        (await agent._assembled()).store.lease._begin_renewal()  # as the timer does
        async with asyncio.timeout(30):
            result = await turn
    assert result["turn_exit_reason"] == "session_lost"
    assert not slow.go_on.is_set(), "the call was stopped"
    assert leases(store) == [("s",)]


async def test_a_lease_of_a_process_that_is_gone_or_of_an_earlier_boot_holds_nobody_up(store: SqliteStore) -> None:
    await agent_of(store, says("one")).arun_conversation("a")
    here = store._owner.split(":")[0]
    for owner, age_s in ((f"{here}:999999999:1", 0), ("other/12345678/1:1:1", 31), ("other/12345678/1:1:1", -7200)):
        put_lease(store, owner, age_s)
        assert (await agent_of(store, says("mine")).arun_conversation("b"))["completed"]


@pytest.mark.parametrize("owner", ["other/12345678/1:1:1", "{host}/87654321/1:1:1", "{here}9:1:1"])
async def test_a_process_that_cannot_be_seen_from_here_holds_its_lease(store: SqliteStore, owner: str) -> None:
    await agent_of(store, says("one")).arun_conversation("a")
    here = store._owner.split(":")[0]
    put_lease(store, owner.format(here=here, host=here.split("/")[0]), 20)
    with pytest.raises(SessionInUse, match=r"is in use by pid 1 o(n other|f another container or boot) since"):
        await agent_of(store, says("never")).arun_conversation("b")


async def test_a_file_that_is_looked_through_while_a_turn_runs_is_sound(store: SqliteStore, slow: Slow) -> None:
    agent = agent_of(store, calls("slow"), says("Done."))
    async with asyncio.TaskGroup() as group:
        turn = group.create_task(agent.arun_conversation("Go."))
        await slow.begun.wait()
        faults = faults_of(store.path)
        slow.go_on.set()
    assert faults == []
    assert turn.result()["final_response"] == "Done."
