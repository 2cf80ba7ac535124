"""The ledger agrees with the provider, and caps hold: also for calls side by side, in one process and in several."""

import asyncio
import json
import os
import random
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hermes.errors import BudgetExceeded
from hermes.models.attempts import Caps, SpendGuard
from hermes.models.http.client import HttpClient
from hermes.ops import AttemptClosed, AttemptOpened, SessionCreated
from hermes.runtime.setup.process import RandomIds, SystemClock
from hermes.scope import TurnScope
from hermes.seams import EventStore
from hermes.spend import Cap, SpendLimit, Spent
from hermes.state.schema import SCHEMA_VERSION
from hermes.state.sqlite.ledger_sums import spent
from hermes.state.sqlite.store import SqliteStore
from hermes.testing.fakes import CountedIds
from hermes.testing.memory_store import MemoryStore
from hermes.testing.replies import Reply, fault, says
from hermes.testing.server import ScriptedServer
from hermes.types import Usage
from tests.models.rooms import Room, scripted
from tests.models.spenders import CENTS, WRITTEN, Looping, cents, loop_until_refused
from tests.models.wire_cases import CASES, asked

SOURCE = Path(__file__).parents[2] / "src"


def mixed_plays(n: int) -> list[tuple[list[Reply], list[Reply]]]:
    """What the first provider answers, and what the one that takes over."""
    counted = says(f"answer {n}").with_usage(input_tokens=100 + n, output_tokens=7, cache_read_tokens=n)
    cut = says("a longer text that is cut " * 10).failing("disconnect", after=6)
    return [
        ([fault("server_error"), counted], []),
        ([says("no count").without_usage()], []),
        ([fault("server_error"), fault("reset"), cut], []),
        ([fault("rate_limit", retry_after=1), counted], []),
        ([fault("rate_limit", retry_after=99)], [counted]),
        ([fault("unauthorized")], [fault("overloaded"), counted]),
        ([fault("server_error")] * 4, [says("late").without_usage()]),
        ([fault("model_not_found")], [cut]),
    ]


async def test_ledger_and_provider_agree_in_a_mixed_run(http: HttpClient, tmp_path: Path) -> None:
    """Retries, fallback, partial answers, whole answers, all four protocols: the sums are the providers' own."""
    store, ids = SqliteStore(tmp_path / "state.db"), CountedIds()
    await store.commit(SessionCreated(session_id="s"))
    plays = [(case, other, *play) for case in CASES for other in CASES for play in mixed_plays(CASES.index(case))]
    unknown = 0
    async with (
        ScriptedServer([reply for *_, here, _ in plays for reply in here]) as one,
        ScriptedServer([reply for *_, there in plays for reply in there]) as two,
        asyncio.timeout(60),
    ):
        for case, other, _, there in plays:
            room = Room(case.model(one, http), other.model(two, http), store=store, max_attempts=4, ids=ids)
            answer = await room.ask(session_id="s", purpose="title" if case is other else "turn")
            assert bool(room.statuses("fallback")) == bool(there)
            unknown += answer.response.usage == Usage()
        one.assert_finished()
        two.assert_finished()
    told = [*one.reported_usage, *two.reported_usage]
    rows = store.read(
        lambda conn: conn.execute(
            "SELECT outcome, input_tokens, output_tokens, cache_read_tokens FROM attempts"
        ).fetchall()
    )
    await store.close()
    assert len(rows) == one.answered + two.answered
    by_tokens = sorted(tuple(row[1:]) for row in rows if row[2] is not None)
    assert by_tokens == sorted((use.input_tokens, use.output_tokens, use.cache_read_tokens) for use in told)
    assert unknown == sum(1 for row in rows if row[2] is None and row[0] in ("ok", "partial"))
    assert {row[0] for row in rows} == {"ok", "partial", "failed"}


async def test_a_price_nobody_knows_is_unknown() -> None:
    room = Room(scripted("m", says("a")))
    answer = await room.ask()
    assert (answer.closing.cost_usd, answer.closing.cost_source) == (None, "none")
    assert room.statuses("warning") == []


# -- caps, one call after the other --------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["turn", "session", "day"])
async def test_a_looping_model_under_a_dollar_cap_stops(tmp_path: Path, what: str) -> None:
    """Each call costs 7 cents; 15 calls are $1.05, and the sixteenth is refused before it is sent."""
    store = SqliteStore(tmp_path / "state.db")
    await store.commit(SessionCreated(session_id="s"), SessionCreated(session_id="child", parent_session_id="s"))
    model = scripted("looping", *[says("again").with_usage(input_tokens=1, output_tokens=7)] * 40)
    guard = SpendGuard(Caps(**{what: Cap(usd=1.0)}))
    room = Room(model, store=store, price=cents, guard=guard, clock=SystemClock())
    sessions = iter(["s", "child"] * 100)
    calls_made = await loop_until_refused(lambda: room.ask(session_id=next(sessions)))
    sums = store.read(spent)
    await store.close()
    assert calls_made == 15
    assert sums.usd == pytest.approx(1.05)


async def test_a_refused_call_still_keeps_what_had_to_be_stored() -> None:
    guard = SpendGuard(Caps(turn=Cap(tokens=1)))
    room = Room(scripted("m", says("a").with_usage(input_tokens=1, output_tokens=1)), guard=guard)
    await room.ask()
    before = SessionCreated(session_id="kept")
    with pytest.raises(BudgetExceeded, match="tokens"):
        await room.ask(before=[before])
    assert room.store.commits[-1] == (before,)


async def test_answers_that_nobody_counted_are_counted_by_their_length() -> None:
    """A provider that tells no usage is held by a cap on tokens all the same; the ledger still says unknown."""
    guard = SpendGuard(Caps(session=Cap(tokens=3_000)))
    room = Room(scripted("m", *[says("word " * 400).without_usage()] * 20), guard=guard)
    await room.store.commit(SessionCreated(session_id="s"))
    calls_made = await loop_until_refused(lambda: room.ask(session_id="s"))
    assert 2 <= calls_made <= 4
    assert all(closed and closed.usage == Usage() for _, closed in room.store.attempts.values())


async def test_a_model_without_a_price_under_a_cap_in_dollars_is_told_of_once() -> None:
    guard = SpendGuard(Caps(day=Cap(usd=1.0)))
    room = Room(scripted("odd", says("a"), says("b")), guard=guard)
    await room.ask()
    await room.ask()
    (told,) = room.statuses("warning")
    assert "nobody knows what odd costs" in told
    assert "count as $0" in told


# -- caps, side by side --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["session", "day"])
async def test_many_agents_on_one_store_pass_a_cap_by_one_call_at_most(tmp_path: Path, what: str) -> None:
    """32 agents, each with helpers beside it, call until they are refused: $1 plus one call of 7 cents."""
    store, ids = SqliteStore(tmp_path / "state.db", durability="process"), RandomIds()
    await store.commit(SessionCreated(session_id="root"))
    model = Looping()

    async def agent(number: int) -> None:
        name = f"child{number}"
        await store.commit(SessionCreated(session_id=name, parent_session_id="root"))
        guard = SpendGuard(Caps(**{what: Cap(usd=1.0)}))
        room = Room(model, store=store, price=cents, guard=guard, clock=SystemClock(), scope=TurnScope(), ids=ids)
        async with asyncio.TaskGroup() as group:
            for purpose in ("turn", "title_generation"):
                ask = lambda purpose=purpose: room.ask(  # noqa: E731
                    asked(max_tokens=WRITTEN), session_id=name, purpose=purpose
                )
                group.create_task(loop_until_refused(ask))

    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        for number in range(32):
            group.create_task(agent(number))
    sums = store.read(spent)
    await store.close()
    assert 1.0 <= sums.usd <= 1.0 + CENTS / 100 + 1e-9
    assert model.most_at_once > 1, "near the cap calls wait for one another, far from it they do not"


async def test_many_calls_of_one_turn_pass_its_cap_by_one_call_at_most() -> None:
    model = Looping()
    room = Room(model, price=cents, guard=SpendGuard(Caps(turn=Cap(usd=1.0))), clock=SystemClock(), scope=TurnScope())
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        for _ in range(8):
            group.create_task(loop_until_refused(lambda: room.ask(asked(max_tokens=WRITTEN))))
    assert 1.0 <= room.client.guard.turn.usd <= 1.0 + CENTS / 100 + 1e-9
    assert model.most_at_once > 1


def test_processes_on_one_store_pass_a_cap_by_one_call_at_most(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    SqliteStore(file).close_sync()
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.models.spenders", str(file), "4"],
            stdout=subprocess.PIPE,
            text=True,
            cwd=SOURCE.parent,
            env={**os.environ, "PYTHONPATH": f"{SOURCE}{os.pathsep}{SOURCE.parent}"},
        )
        for _ in range(4)
    ]
    told = [child.communicate(timeout=120)[0] for child in children]
    assert [child.returncode for child in children] == [0] * 4
    store = SqliteStore(file)
    sums = store.read(spent)
    store.close_sync()
    assert sum(json.loads(out) for out in told) * CENTS / 100 == pytest.approx(sums.usd)
    assert 1.0 <= sums.usd <= 1.0 + CENTS / 100 + 1e-9


# -- what a store owes -----------------------------------------------------------------------------------------------


@pytest.fixture(params=[SqliteStore, MemoryStore])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EventStore]:
    made: EventStore = MemoryStore() if request.param is MemoryStore else SqliteStore(tmp_path / "state.db")
    await made.commit(SessionCreated(session_id="s"), SessionCreated(session_id="other"))
    await made.commit(SessionCreated(session_id="child", parent_session_id="s"))
    yield made
    await made.close()


def opened(name: str, session: str = "s", *, held: Spent | None = None, **more: Any) -> AttemptOpened:
    base = {"purpose": "turn", "provider": "p", "model": "m", "started_at": 100.0}
    return AttemptOpened(attempt_id=name, session_id=session, held=held or Spent(), **{**base, **more})


def closed(name: str, session: str = "s", **more: Any) -> AttemptClosed:
    return AttemptClosed(attempt_id=name, session_id=session, outcome="ok", **more)


def of_session(cap: Cap, session: str = "s") -> tuple[SpendLimit, ...]:
    return (SpendLimit(span="session", cap=cap, session_id=session),)


async def test_what_is_under_way_takes_room_until_it_is_closed(store: EventStore) -> None:
    limits = of_session(Cap(usd=1.0), "child")
    await store.commit(opened("a", "child", held=Spent(usd=1.0)), opened("elsewhere", "other", held=Spent(usd=9.0)))
    with pytest.raises(BudgetExceeded, match="under way") as crowded:
        await store.commit(opened("b", limits=limits))
    assert crowded.value.is_crowded
    await store.commit(closed("a", "child", usage=Usage(1, 1), cost_usd=0.25), opened("b", limits=limits))


async def test_a_whole_family_shares_the_cap_of_its_session(store: EventStore) -> None:
    await store.commit(opened("a"), closed("a", usage=Usage(5, 5)))
    for session in ("s", "child"):
        with pytest.raises(BudgetExceeded, match="10 of 10 tokens are spent") as refused:
            await store.commit(opened("b", session, limits=of_session(Cap(tokens=10), session)))
        assert not refused.value.is_crowded
    await store.commit(opened("b", "other", limits=of_session(Cap(tokens=10), "other")))


async def test_nothing_of_a_refused_commit_is_kept(store: EventStore) -> None:
    await store.commit(opened("a"), closed("a", latency_ms=2_000.0))
    with pytest.raises(BudgetExceeded, match="2 of 2 seconds"):
        await store.commit(SessionCreated(session_id="new"), opened("b", limits=of_session(Cap(seconds=2))))
    assert await store.load("new") is None


async def test_an_answer_without_a_count_is_worth_what_its_closing_says(store: EventStore) -> None:
    await store.commit(opened("a", held=Spent(tokens=500)), closed("a", held=Spent(usd=0.5, tokens=40)))
    for cap, words in ((Cap(tokens=40), "40 of 40 tokens"), (Cap(usd=0.5), r"\$0.5000 of \$0.5")):
        with pytest.raises(BudgetExceeded, match=words):
            await store.commit(opened("b", limits=of_session(cap)))
    await store.commit(opened("b", limits=of_session(Cap(tokens=41))))


async def test_only_what_was_begun_since_counts(store: EventStore) -> None:
    limit = SpendLimit(span="day", cap=Cap(tokens=2), since=200.0)
    await store.commit(opened("a"), closed("a", usage=Usage(5, 5)), opened("b", started_at=201.0, limits=(limit,)))
    await store.commit(closed("b", usage=Usage(1, 1)))
    with pytest.raises(BudgetExceeded, match="cap of this day"):
        await store.commit(opened("c", started_at=202.0, limits=(limit,)))


async def test_a_process_that_is_gone_holds_no_room(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    await store.commit(SessionCreated(session_id="s"), opened("a", held=Spent(usd=5.0)))
    gone = f"{os.uname().nodename}:{2**22 + 1}:1"  # above the largest pid
    store.write(lambda conn: conn.execute("UPDATE attempts SET owner = ?", (gone,)))
    await store.commit(opened("b", limits=of_session(Cap(usd=1.0))))
    await store.close()


def test_a_file_of_the_version_before_gets_its_index(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    SqliteStore(file).close_sync()

    def back(conn: Any) -> None:
        conn.execute("DROP INDEX idx_attempts_started")
        conn.execute("ALTER TABLE attempts DROP COLUMN held_usd")
        conn.execute("PRAGMA user_version = 1")

    older = SqliteStore(file)
    older.write_alone(back)
    older.close_sync()
    store = SqliteStore(file)
    plan: Callable[[Any], str] = lambda conn: str(  # noqa: E731
        conn.execute("EXPLAIN QUERY PLAN SELECT sum(held_usd) FROM attempts WHERE started_at >= 5").fetchall()
    )
    told, version = store.read(plan), store.read(lambda conn: conn.execute("PRAGMA user_version").fetchone()[0])
    store.close_sync()
    assert "idx_attempts_started" in told
    assert version == SCHEMA_VERSION


async def test_sums_are_right_however_attempts_overlap(tmp_path: Path) -> None:
    """What a store has added up before is the same as the sum over all rows, whatever closes in whatever order."""
    store, number = SqliteStore(tmp_path / "state.db", durability="process"), 0
    await store.commit(*(SessionCreated(session_id=one) for one in ("s", "other")))
    limits = (*of_session(Cap(usd=1e6, tokens=10**9)), SpendLimit(span="day", cap=Cap(usd=1e6), since=50.0))
    dice, under_way = random.Random(7), list[tuple[str, str]]()
    for _ in range(200):
        if under_way and dice.random() < 0.5:
            name, session = under_way.pop(dice.randrange(len(under_way)))
            await store.commit(closed(name, session, usage=Usage(dice.randrange(9), 1), cost_usd=dice.randrange(9) / 8))
        else:
            name, session, number = f"a{number}", dice.choice(("s", "other")), number + 1
            await store.commit(opened(name, session, started_at=dice.choice((40.0, 60.0)), limits=limits))
            under_way.append((name, session))
    for limit in limits:
        sums = store.read(partial(spent, since=limit.since, session_id=limit.session_id))
        tight = SpendLimit(span=limit.span, cap=Cap(usd=sums.usd), since=limit.since, session_id=limit.session_id)
        with pytest.raises(BudgetExceeded, match="are spent"):
            await store.commit(opened("full", limits=(tight,)))
        roomy = replace(tight, cap=Cap(usd=sums.usd + 0.01))
        await store.commit(opened(f"fits {limit.span}", limits=(roomy,)))
    await store.close()
