"""A message from another process runs where the session is driven, and the sender prints the same answer."""

import asyncio
import json
import os
import sys
from pathlib import Path

from hermes.host.events import MessageReturned, MessageTaken
from hermes.testing.replies import calls, says
from hermes.testing.server import ServerThread
from hermes.types import CallStarted, StatusChanged
from tests.host.conftest import Ear, Hosting, Starting
from tests.surfaces.cli.interactive.terminal import answering


async def test_the_owner_runs_it_and_the_sender_follows(
    hosting: Hosting, starting: Starting, home: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    slow = f"until test -e {gate}; do sleep 0.05; done"
    script = answering({"Work": [calls("terminal", command=slow), says("Worked.")]})
    with ServerThread(script) as server:
        async with hosting() as host:
            live = host.session(starting(server))
            ear = Ear(live)
            await live.submit("Work")
            await ear.hears(CallStarted)
            words = ("chat", "--resume", live.session_id, "-q", "Me, too.", "--json", "--model", "scripted")
            sender = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "hermes.surfaces.cli.main", *words, "--base-url", server.base_url),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                env={**os.environ, "HERMES_HOME": str(home)},
            )
            assert sender.stdout is not None
            waiting = json.loads(await sender.stdout.readline())
            gate.touch()
            told, _ = await asyncio.wait_for(sender.communicate(), 60)
            assert [(await ear.turn_end()).answer for _ in range(2)] == ["Worked.", "I was asked: Me, too."]
            await live.close()
    assert waiting["kind"] == "waiting"
    assert "your message waits in its line" in waiting["message"]
    events = [json.loads(line) for line in told.splitlines()]
    assert (sender.returncode, events[-1]["exit_code"]) == (0, 0)
    assert events[-1]["final_response"] == "I was asked: Me, too."
    assert [event.text for event in ear.heard if isinstance(event, MessageTaken)] == ["Work", "Me, too."]
    bodies = [str(request.json) for request in server.requests]
    assert sum("Me, too." in body and "Give a title" not in body for body in bodies) == 1


async def test_two_hosts_on_one_session_share_its_line(
    hosting: Hosting, starting: Starting, home: Path, tmp_path: Path
) -> None:
    """The owner is another process; this one's message runs there, or here when the owner has ended."""
    gate = tmp_path / "gate"
    slow = f"until test -e {gate}; do sleep 0.05; done"
    script = answering({"Work": [calls("terminal", command=slow), says("Worked.")]})
    with ServerThread(script) as server:
        async with hosting() as host:
            live = host.session(starting(server))
            ear = Ear(live)
            await live.submit("Hello")
            await ear.turn_end()
            words = ("chat", "--resume", live.session_id, "-q", "Work", "--json", "--model", "scripted")
            owner = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "hermes.surfaces.cli.main", *words, "--base-url", server.base_url),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                env={**os.environ, "HERMES_HOME": str(home)},
            )
            assert owner.stdout is not None
            while json.loads(await asyncio.wait_for(owner.stdout.readline(), 60))["type"] != "call_started":
                pass
            await live.submit("Me, too.")
            await ear.hears(StatusChanged)
            assert live.interrupt()
            await ear.hears(MessageReturned)
            assert [one.text for one in live.queue.open_ones] == ["Me, too."]
            ear.heard.clear()
            live.release()
            await ear.hears(StatusChanged)
            gate.touch()
            await asyncio.wait_for(owner.communicate(), 60)
            assert (await ear.turn_end()).answer == "I was asked: Me, too."
            assert live.queue.line == ()
            await live.close()
    said = [str(request.json["messages"][-1]["content"]) for request in server.requests]
    assert said.count("Me, too.") == 1
