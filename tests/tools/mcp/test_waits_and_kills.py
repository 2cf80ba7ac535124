"""What a session waits for, and what it outlives: servers that are slow, absent, killed a thousand times."""

import asyncio
import os
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from hermes.testing.replies import calls, says
from hermes.tools.mcp import owned_server
from tests.tools.mcp.mcp_room import bare, body, eventually, mcp_room

DONE = says("Done.")
KILLS = 1000 if os.environ.get("HERMES_TEST_FULL") == "1" else 20


def server_processes() -> list[psutil.Process]:
    """The bare servers that descend from this process, innermost only."""
    found = []
    for child in psutil.Process().children(recursive=True):
        try:
            words = child.cmdline()
        except psutil.Error:
            continue
        if any(word.endswith("bare_server.py") for word in words) and "python" in os.path.basename(words[0]):
            found.append(child)
    return found


async def test_with_a_manifest_no_request_waits_for_slow_servers(
    hermes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = {f"s{number}": bare() for number in range(3)}
    async with mcp_room(hermes_home, quick, DONE) as room:
        await room.ask()
    # The same servers by their identity, which are slow from now on: a file beside them says so.
    loaded: list[str] = []

    async def never(*_: Any, **__: Any) -> Any:
        loaded.append("connected")
        await asyncio.Event().wait()

    monkeypatch.setattr("hermes.tools.mcp.connection.start_server", never)
    async with mcp_room(hermes_home, quick, DONE, seen=False) as room:
        seen_at_request: list[list[str]] = []
        stream = room.model.stream

        def watched(*args: Any) -> Any:
            seen_at_request.append(list(loaded))
            return stream(*args)

        room.model.stream = watched  # type: ignore[method-assign,assignment]  # only watched
        await room.ask()
        names = {tool.name for tool in room.model.full_requests[0].tools}
    assert {f"mcp__s{number}__echo" for number in range(3)} <= names
    assert seen_at_request == [[]], "no server was even looked for before the request was made"


async def test_a_server_never_seen_is_waited_for_no_longer_than_is_set_and_that_is_told(hermes_home: Path) -> None:
    settings = {"mcp_discovery_timeout": 0.3}
    async with mcp_room(hermes_home, {"slow": bare("slow")}, DONE, seen=False, settings=settings) as room:
        await room.ask()
        told = room.heard.told()
        names = {tool.name for tool in room.model.full_requests[0].tools}
    assert "were not there within 0.3 s: slow" in told
    assert not any(name.startswith("mcp__") for name in names)


async def test_a_server_that_was_absent_is_offered_to_the_next_session(hermes_home: Path) -> None:
    settings = {"mcp_discovery_timeout": 0}
    async with mcp_room(hermes_home, {"late": bare()}, DONE, seen=False, settings=settings) as room:
        await room.ask()
        await room.until("late", "ready")
    async with mcp_room(hermes_home, {"late": bare()}, calls("mcp__late__pid"), DONE, seen=False) as room:
        assert body((await room.ask())[0])["result"]


async def test_an_idle_server_sleeps_and_the_next_call_starts_it(hermes_home: Path) -> None:
    script = (calls("mcp__bare__pid"), DONE, calls("mcp__bare__pid"), DONE)
    async with mcp_room(hermes_home, {"bare": bare(idle_timeout_seconds=0.2)}, *script) as room:
        first = body((await room.ask())[0])["result"]
        await room.until("bare", "asleep")
        assert body((await room.ask())[0])["result"] != first


async def test_a_server_that_dies_between_calls_is_back_without_one(hermes_home: Path) -> None:
    async with mcp_room(hermes_home, {"bare": bare()}, DONE) as room:
        await room.until("bare", "ready")
        server = (await room.client()).servers["bare"]
        link = await server.link()
        for process in server_processes():
            process.kill()
        async with asyncio.timeout(20):
            await link.signals.ended.wait()
        await eventually(lambda: server.is_ready)


def test_the_pause_between_attempts_is_short_for_ten_minutes() -> None:
    assert owned_server.EASY_PAUSE_S == 4
    assert owned_server.EASY_FOR_S == 600
    assert owned_server.LATER_PAUSE_S == 60


async def test_kills_at_any_moment_hang_no_turn_and_leave_no_process(hermes_home: Path) -> None:
    """Each call is answered, within its time, and the server is there for the next one."""
    chance = random.Random(31)
    turns = [reply for _ in range(KILLS) for reply in (calls("mcp__bare__sleep", ms=chance.randint(0, 100)), DONE)]
    entry = bare(timeout=10)
    async with mcp_room(hermes_home, {"bare": entry}, *turns) as room:
        answered = killed = 0
        for _ in range(KILLS):
            delay = chance.random() * 0.5

            async def kill(after: float = delay) -> int:
                await eventually(lambda: bool(server_processes()))
                await asyncio.sleep(after)
                found = server_processes()
                for process in found:
                    with suppress(psutil.NoSuchProcess):
                        process.kill()
                return len(found)

            async with asyncio.timeout(30), asyncio.TaskGroup() as group:
                ends = group.create_task(kill())
                turn = group.create_task(room.ask())
            (result,) = turn.result()
            killed += ends.result()
            answered += "result" in body(result)
            assert "result" in body(result) or "error" in body(result)
        assert killed >= KILLS // 2
        assert answered > 0
    assert not server_processes()
