"""What wakes a session that sleeps beside a message: a moment, and the end of a background process."""

import asyncio
import time
from pathlib import Path

from hermes.host.events import TurnEnded
from hermes.host.host import Host
from hermes.host.service import SERVICES, ServiceContext
from hermes.testing.replies import calls, says
from hermes.testing.server import ServerThread
from tests.host.conftest import Hosting, Starting, stored_until
from tests.host.test_sleep import until
from tests.surfaces.cli.interactive.terminal import answering


async def answers(host: Host, session_id: str, count: int) -> list[str]:
    live = await host.wake(session_id)
    stream = live.events()
    found = []
    for _ in range(count):
        ended = (await stored_until(stream, TurnEnded))[-1].event
        assert isinstance(ended, TurnEnded)
        found.append(ended.answer)
    stream.close()
    return found


async def test_a_moment_wakes_a_session(hosting: Hosting, starting: Starting) -> None:
    with ServerThread(answering({})) as server:
        async with hosting(sleeps_after_s=0.02) as host:
            live = host.session(starting(server))
            await live.submit("one")
            await until(lambda: live.session_id in host.asleep)
            async with asyncio.TaskGroup() as group:
                group.create_task(host.submit_at(time.time() + 0.2, live.session_id, "two", key="k"))
                group.create_task(host.submit_at(time.time() + 0.2, live.session_id, "two", key="k"))
            assert await answers(host, live.session_id, 2) == ["I was asked: one", "I was asked: two"]


async def test_the_end_of_a_background_process_wakes_its_session(
    hosting: Hosting, starting: Starting, tmp_path: Path
) -> None:
    order = {"command": f"while [ ! -e {tmp_path}/go ]; do sleep 0.1; done; echo ready", "background": True}
    script = answering(
        {
            "Begin": [calls("terminal", **order, notify_on_complete=True), says("It runs.")],
            "A background process": [says("It has ended.")],
        }
    )
    with ServerThread(script) as server:
        async with hosting(sleeps_after_s=0.02) as host:
            start = starting(server)
            live = host.session(start)
            await live.submit("Begin")
            await until(lambda: live.session_id in host.asleep)
            context = ServiceContext(host, start.settings, lambda: start)
            watch = asyncio.get_running_loop().create_task(SERVICES.load("background-ends").run(context))
            (tmp_path / "go").touch()
            await until(lambda: live.session_id not in host.asleep)
            assert await answers(host, live.session_id, 2) == ["It runs.", "It has ended."]
            watch.cancel()
    asked = [str(request.json["messages"]) for request in server.requests if "has ended" in str(request.json)]
    assert any("exit code 0" in each and "ready" in each for each in asked)
