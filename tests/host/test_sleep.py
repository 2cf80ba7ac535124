"""Sessions that sleep cost next to nothing and wake by a message; turns wait fairly for their place."""

import asyncio
import tracemalloc
from collections.abc import Callable

import pytest

from hermes.errors import SessionNotFound
from hermes.host.events import LiveEvent, TurnEnded
from hermes.host.host import Host
from hermes.testing.server import ServerThread
from hermes.types import TurnFinished, TurnStarted
from tests.host.conftest import WAIT_S, Ear, Hosting, Starting, stored_until
from tests.surfaces.cli.interactive.terminal import answering

TURNS = 8
SLEEPING = 10_000
MOST_BYTES = 2_000  # of each


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not is_so():  # noqa: ASYNC110 - nobody tells when a session has fallen asleep: that is the point
            await asyncio.sleep(0.01)


async def test_a_session_that_nobody_listens_to_sleeps_and_a_message_wakes_it(
    hosting: Hosting, starting: Starting
) -> None:
    with ServerThread(answering({})) as server:
        async with hosting(sleeps_after_s=0.02) as host:
            live = host.session(starting(server))
            session_id = live.session_id
            await live.submit("one")
            await until(lambda: session_id in host.asleep)
            assert host.sessions == {}
            await host.submit(session_id, "two", key="k")
            woken = host.sessions[session_id]
            assert woken is not live
            stream = woken.events()
            heard = [await stored_until(stream, TurnEnded), await stored_until(stream, TurnEnded)]
            stream.close()
            with pytest.raises(SessionNotFound, match="open it first"):
                await host.submit("20000101_000000_abcdef", "three")
    answers = [each[-1].event.answer for each in heard if isinstance(each[-1].event, TurnEnded)]
    assert answers == ["I was asked: one", "I was asked: two"]
    numbers = [item.number for each in heard for item in each]
    assert numbers == sorted(set(numbers))


async def test_many_who_wake_a_session_at_once_are_all_heard(hosting: Hosting, starting: Starting) -> None:
    with ServerThread(answering({})) as server:
        async with hosting(sleeps_after_s=0.02) as host:
            live = host.session(starting(server, has_titles=False))
            await live.submit("begin")
            await until(lambda: live.session_id in host.asleep)
            async with asyncio.TaskGroup() as group:
                for number in range(TURNS):
                    group.create_task(host.submit(live.session_id, f"number {number}"))
            stream = (await host.wake(live.session_id)).events()
            ends = [(await stored_until(stream, TurnEnded))[-1].event for _ in range(TURNS + 1)]
            stream.close()
    answers = {one.answer for one in ends if isinstance(one, TurnEnded)}
    assert answers == {"I was asked: begin", *(f"I was asked: number {number}" for number in range(TURNS))}


async def test_who_is_listened_to_stays_awake(hosting: Hosting, starting: Starting) -> None:
    with ServerThread(answering({})) as server:
        async with hosting(sleeps_after_s=0.02) as host:
            quiet, heard = host.session(starting(server)), host.session(starting(server))
            ear = Ear(heard)
            await heard.submit("one")
            await quiet.submit("one")
            await ear.turn_end()
            await until(lambda: quiet.session_id in host.asleep)
            assert list(host.sessions) == [heard.session_id]
            heard.unlisten(ear)
            await until(lambda: heard.session_id in host.asleep)


class Counter:
    """`SessionListener` that notes how many turns of all its sessions run at once."""

    can_answer = False

    def __init__(self) -> None:
        self.running = self.most = self.ended = 0
        self.all_ended = asyncio.Event()

    def emit(self, event: LiveEvent) -> None:
        if isinstance(event, TurnStarted):
            self.running += 1
            self.most = max(self.most, self.running)
        elif isinstance(event, TurnFinished):
            self.running -= 1
        elif isinstance(event, TurnEnded):
            self.ended += 1
            if self.ended == TURNS:
                self.all_ended.set()

    def offer(self, _text: str) -> bool:
        return False


@pytest.mark.parametrize("most_turns", [1, 3])
async def test_turns_beyond_the_limit_wait_and_none_is_forgotten(
    hosting: Hosting, starting: Starting, most_turns: int
) -> None:
    counter = Counter()
    with ServerThread(answering({})) as server:
        async with hosting(most_turns=most_turns) as host:
            sessions = [host.session(starting(server, has_titles=False)) for _ in range(TURNS)]
            for session in sessions:
                session.listen(counter)
                await session.submit("Hello")
            async with asyncio.timeout(WAIT_S):
                await counter.all_ended.wait()
            assert [session.last_answer for session in sessions] == ["I was asked: Hello"] * TURNS
    assert 1 <= counter.most <= most_turns


async def test_ten_thousand_sleeping_sessions_are_ten_thousand_short_entries(starting: Starting) -> None:
    with ServerThread(answering({})) as server:
        start = starting(server)
    async with Host() as host:
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            for number in range(SLEEPING):
                host.know(f"20261118_060000_{number:06x}", start)
            used = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()
    assert used / SLEEPING <= MOST_BYTES
