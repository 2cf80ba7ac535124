"""Events of a session: numbered rows that survive, told without a gap and without doubling, whoever listens."""

import asyncio
from itertools import pairwise

import pytest

from hermes import AIAgent
from hermes.errors import StoreError
from hermes.host.event_log import MOST, EventLog, read_events
from hermes.host.events import MessageTaken, NumberedEvent, TurnEnded
from hermes.state import SessionDB
from hermes.testing.replies import calls, says
from hermes.testing.server import ServerThread
from hermes.types import (
    CallFinished,
    CallStarted,
    SessionRotated,
    TextDelta,
    TurnStarted,
    text_of,
)
from tests.host.conftest import WAIT_S, Ear, Hosting, Starting, stored_until
from tests.surfaces.cli.interactive.terminal import answering


def kinds(items: list[NumberedEvent]) -> list[type]:
    return [type(item.event) for item in items]


async def test_a_turn_is_told_in_numbers_that_grow_and_again_from_the_store(
    hosting: Hosting, starting: Starting
) -> None:
    script = answering({"Go": [calls("terminal", command="echo hi"), says("Said hi.")]})
    with ServerThread(script) as server:
        async with hosting() as host:
            live = host.session(starting(server))
            stream = live.events()
            await live.submit("Go", key="k")
            heard = await stored_until(stream, TurnEnded)
            stream.close()
            late = live.events(after=heard[1].number)
            rest = await stored_until(late, TurnEnded)
            late.close()
            again = read_events(SessionDB(store=live.db.store), live.session_id, 0)
    assert kinds(heard) == [MessageTaken, TurnStarted, CallStarted, CallFinished, TurnEnded]
    assert all(one.number < other.number for one, other in pairwise(heard))
    assert [item.number for item in rest] == [item.number for item in heard[2:]]
    assert [item.number for item in again] == [item.number for item in heard]
    taken, _, started, finished, ended = [item.event for item in again]
    assert isinstance(taken, MessageTaken)
    assert (taken.key, taken.text) == ("k", "Go")
    assert isinstance(started, CallStarted)
    assert started.args == {"command": "echo hi"}
    assert isinstance(finished, CallFinished)
    assert finished.result.status == "ok"
    assert "hi" in text_of(finished.result.content)
    assert isinstance(ended, TurnEnded)
    assert (ended.verdict, ended.answer) == ("answered", "Said hi.")


async def test_a_program_that_uses_an_agent_alone_stores_no_events(hosting: Hosting, starting: Starting) -> None:
    with ServerThread(answering({})) as server:
        async with hosting() as host:
            start = starting(server)
            db = host.db(start.settings)
            agent = AIAgent(model="scripted", base_url=server.base_url, session_db=db, cwd=start.folder)
            await agent.arun_conversation("Hello")
            await agent.aclose()
            assert db.message_count(agent.session_id) == 2
            assert db.queries.newest_event() == 0


async def test_rows_that_cannot_be_read_are_told_to_who_reads_them_and_to_nobody_else(
    hosting: Hosting, starting: Starting
) -> None:
    with ServerThread(answering({})) as server:
        async with hosting() as host:
            live = host.session(starting(server))
            ear = Ear(live)
            was_read = asyncio.Event()

            async def read(_after: int, _known: object) -> list[NumberedEvent]:
                if not was_read.is_set():
                    was_read.set()
                    return []
                raise StoreError("the disk is gone")

            log = EventLog(read, host.begin)
            stream = log.stream(0)

            async def listen() -> None:
                with pytest.raises(StoreError, match="the disk is gone"):
                    await anext(stream)

            async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as group:
                group.create_task(listen())
                await was_read.wait()
                log.put(MessageTaken("k", "words"))
            await live.submit("Hello")
            assert (await ear.turn_end()).answer == "I was asked: Hello"


async def test_numbers_go_on_where_a_compression_leads(hosting: Hosting, starting: Starting) -> None:
    notes = {"<conversation>": [says("## Active Task\nshort questions")]}
    with ServerThread(answering(notes)) as server:
        async with hosting() as host:
            live = host.session(starting(server))
            ear, first = Ear(live), live.session_id
            for number in range(6):
                await live.submit(f"number {number} is a question with words in it, " + "and more of them " * 12)
                await ear.turn_end()
            stream = live.events()
            before = await stored_until(stream, TurnEnded)
            live.compress("numbers")
            moved = (await stored_until(stream, SessionRotated))[-1]
            await live.submit("and now?")
            after = await stored_until(stream, TurnEnded)
            stream.close()
            assert live.session_id != first
            again = read_events(live.db, live.session_id, 0)
    assert moved.event == SessionRotated(session_id=live.session_id, previous=first)
    assert before[0].number < moved.number < after[-1].number
    assert [item.number for item in again] == sorted({item.number for item in again})
    assert again[-1].number == after[-1].number
    assert again[0].number == before[0].number


async def test_a_listener_that_stalls_loses_deltas_and_nothing_that_is_stored() -> None:
    rows: list[NumberedEvent] = []
    tasks: list[asyncio.Task[None]] = []

    async def read(after: int, _known: object) -> list[NumberedEvent]:
        await asyncio.sleep(0)
        return [item for item in rows if item.number > after][:7]

    async with asyncio.TaskGroup() as group:
        log = EventLog(read, lambda work, name: tasks.append(group.create_task(work, name=name)))
        stalled, brisk = log.stream(0), log.stream(0)
        heard: list[NumberedEvent] = []

        async def listen() -> None:
            async for item in brisk:
                heard.append(item)
                if item.is_stored and item.number == 2 * MOST:
                    return

        listener = group.create_task(listen())
        await asyncio.sleep(0)
        taken = [await anext(stalled)] if rows else []
        for number in range(1, 2 * MOST + 1):
            rows.append(NumberedEvent(number, MessageTaken(str(number), ""), is_stored=True))
            log.put(MessageTaken(str(number), ""))
            for _ in range(3):
                log.put(TextDelta("x" * 1000))
            await asyncio.sleep(0)
        async with asyncio.timeout(30):
            await listener
            size = len(stalled._buffer)
            while not taken or not taken[-1].is_stored or taken[-1].number < 2 * MOST:
                taken.append(await anext(stalled))
    assert size <= MOST
    assert [item.number for item in taken if item.is_stored] == list(range(1, 2 * MOST + 1))
    assert [item.number for item in heard if item.is_stored] == list(range(1, 2 * MOST + 1))


async def test_several_listeners_hear_the_same_in_the_same_order(hosting: Hosting, starting: Starting) -> None:
    script = answering({"Go": [calls("terminal", command="echo hi"), says("Said hi.")]})
    with ServerThread(script) as server:
        async with hosting() as host:
            live = host.session(starting(server))
            streams = [live.events(), live.events()]
            await live.submit("Go")
            first = await stored_until(streams[0], TurnEnded)
            third = live.events()
            others = [await stored_until(stream, TurnEnded) for stream in (streams[1], third)]
            for stream in (*streams, third):
                stream.close()
    assert [[item.number for item in heard] for heard in others] == [[item.number for item in first]] * 2
