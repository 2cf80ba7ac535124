"""What sessions cost one host: asleep, awake, woken at once, and watched by listeners that stall.

    python bench/host.py [--sessions N] [--rest SECONDS]

Memory is that of a fresh process each: with N known sessions less that with 100. Ends with 1 when a figure that must
hold does not.
"""

import argparse
import asyncio
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from hermes.config.load import load_settings  # noqa: E402
from hermes.host.agent_settings import AgentSettings  # noqa: E402
from hermes.host.events import LiveEvent, TurnEnded  # noqa: E402
from hermes.host.host import Host  # noqa: E402
from hermes.host.hosted_session import SessionStart  # noqa: E402
from hermes.host.live_session import LiveSession  # noqa: E402
from hermes.runtime.setup.process import shared  # noqa: E402

FEW, ACTIVE, TURNS, ROUNDS = 100, 32, 10, 5
LATENCY_S = 0.05
MOST_ASLEEP_BYTES, MOST_AWAKE_BYTES = 2_000, 50_000
MOST_P99_MS = 100.0
MOST_WATCHED = 1.03


class Canned:
    """The canned provider in a process of its own, and when it got which message."""

    def __init__(self, process: asyncio.subprocess.Process, url: str) -> None:
        self._process, self.url = process, url
        self.arrived: dict[int, float] = {}

    async def read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            at, mark = line.split()
            self.arrived.setdefault(int(mark), float(at))


@asynccontextmanager
async def canned() -> AsyncIterator[Canned]:
    argv = (sys.executable, str(ROOT / "bench" / "canned.py"), str(LATENCY_S), "--marks", "--text")
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*argv, stdin=pipe, stdout=pipe)
    assert process.stdout is not None
    assert process.stdin is not None
    made = Canned(process, f"http://127.0.0.1:{int(await process.stdout.readline())}/v1")
    reading = asyncio.get_running_loop().create_task(made.read())
    try:
        yield made
    finally:
        process.stdin.close()
        await process.wait()
        await reading


class Ended:
    """`SessionListener` that counts ends."""

    can_answer = False

    def __init__(self) -> None:
        self.count = 0
        self.news = asyncio.Event()

    def emit(self, event: LiveEvent) -> None:
        if isinstance(event, TurnEnded):
            self.count += 1
            self.news.set()

    def offer(self, _text: str) -> bool:
        return False

    async def reach(self, count: int) -> None:
        while self.count < count:
            self.news.clear()
            await self.news.wait()


def start_of(home: str, url: str) -> SessionStart:
    flags = {"model.default": "canned", "model.base_url": url, "model.context_length": 100_000}
    settings = load_settings(Path(home), environ={"PATH": os.environ["PATH"], "HOME": home}, flags=flags)
    return SessionStart(settings=settings, asked=AgentSettings(), folder=home, has_titles=False)


def resident() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def measure(sessions: int, rest_s: float) -> dict[str, Any]:
    """Known sessions, opened and put to sleep for real; then some that work, and some that are woken at once."""
    with tempfile.TemporaryDirectory() as home:
        async with canned() as server, Host(sleeps_after_s=3600.0) as host:
            start = start_of(home, server.url)
            ears = Ended()
            ids = [await asleep(host, start) for _ in range(sessions)]
            awake = [await host.wake(one) for one in ids[:ACTIVE]]
            marks = iter(range(10_000_000))
            sent: dict[int, float] = {}

            async def say(live: LiveSession, turns: int) -> None:
                mine = Ended()
                live.listen(mine)
                live.listen(ears)
                for turn in range(turns):
                    mark = next(marks)
                    sent[mark] = time.monotonic()
                    await live.submit(f"message #{mark}#")
                    await mine.reach(turn + 1)
                live.unlisten(mine)
                live.unlisten(ears)

            await say(host.session(start), 1)  # what the first turn of a process loads is none of theirs
            sent.clear()
            async with asyncio.TaskGroup() as group:
                for live in awake:
                    group.create_task(say(live, TURNS))
            working = waits(sent, server.arrived)
            for live in awake:
                await host.put_to_sleep(live)
            await asyncio.sleep(rest_s)
            memory = resident()
            sent.clear()

            async def wake(session_id: str) -> None:
                mark = next(marks)
                sent[mark] = time.monotonic()
                await host.submit(session_id, f"message #{mark}#")
                mine = Ended()
                host.sessions[session_id].listen(mine)
                await mine.reach(1)

            before = resident()
            async with asyncio.TaskGroup() as group:
                for session_id in ids[ACTIVE : 2 * ACTIVE]:
                    group.create_task(wake(session_id))
            held = resident() - before
            woken = waits(sent, server.arrived)
            starved = ACTIVE * TURNS + 1 - ears.count
        await shared.close()
    return {
        "memory": memory,
        "held": held,
        "working_p99": percentile(working),
        "woken_p99": percentile(woken),
        "starved": starved,
        "counted": len(working) + len(woken),
    }


async def asleep(host: Host, start: SessionStart) -> str:
    live = host.session(start)
    await live.open()
    await host.put_to_sleep(live)
    return live.session_id


def waits(sent: dict[int, float], arrived: dict[int, float]) -> list[float]:
    return [(arrived[mark] - at) * 1000 for mark, at in sent.items() if mark in arrived]


def percentile(times: list[float]) -> float:
    return sorted(times)[max(0, int(len(times) * 0.99) - 1)]


async def awake_bytes(count: int) -> int:
    """Resident memory of a process with so many sessions that had one turn and are still awake."""
    with tempfile.TemporaryDirectory() as home:
        async with canned() as server, Host(sleeps_after_s=3600.0) as host:
            start = start_of(home, server.url)
            ears = Ended()
            for number in range(count):
                live = host.session(start)
                live.listen(ears)
                await live.submit(f"message #{number}#")
                await ears.reach(number + 1)
            memory = resident()
        await shared.close()
    return memory


async def watched() -> float:
    """Time of turns with two listeners and one that stalls, by that without any; medians, in turn."""
    ratios: list[float] = []
    with tempfile.TemporaryDirectory() as home:
        async with canned() as server, Host(sleeps_after_s=3600.0) as host:
            start = start_of(home, server.url)
            mark = iter(range(10_000_000))

            async def turns(live: LiveSession) -> float:
                mine = Ended()
                live.listen(mine)
                began = time.perf_counter()
                for turn in range(TURNS * 2):
                    await live.submit(f"message #{next(mark)}#")
                    await mine.reach(turn + 1)
                took = time.perf_counter() - began
                live.unlisten(mine)
                return took

            for _ in range(ROUNDS + 1):
                alone = await turns(host.session(start))
                live = host.session(start)
                streams = [live.events() for _ in range(3)]  # the third is never read
                async with asyncio.TaskGroup() as group:
                    readers = [group.create_task(_drain(stream)) for stream in streams[:2]]
                    ratios.append(await turns(live) / alone)
                    for reader in readers:
                        reader.cancel()
                for stream in streams:
                    stream.close()
        await shared.close()
    return statistics.median(ratios[1:])


async def _drain(stream: Any) -> None:
    async for _ in stream:
        pass


def child(*words: str) -> Any:
    ran = subprocess.run(
        [sys.executable, __file__, *words],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NO_COLOR": "1"},
    )
    return json.loads(ran.stdout.splitlines()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--rest", type=float, default=60.0, help="seconds before memory is looked at")
    parser.add_argument("--child", choices=["measure", "awake", "watched"])
    wanted = parser.parse_args()
    if wanted.child == "measure":
        print(json.dumps(asyncio.run(measure(wanted.sessions, wanted.rest))))
        return 0
    if wanted.child == "awake":
        print(json.dumps(asyncio.run(awake_bytes(wanted.sessions))))
        return 0
    if wanted.child == "watched":
        print(json.dumps(asyncio.run(watched())))
        return 0
    few = child("--child", "measure", "--sessions", str(FEW), "--rest", str(wanted.rest))
    many = child("--child", "measure", "--sessions", str(wanted.sessions), "--rest", str(wanted.rest))
    awake = [child("--child", "awake", "--sessions", str(count)) for count in (20, 420)]
    figures = [
        ("bytes of a sleeping session", (many["memory"] - few["memory"]) / (wanted.sessions - FEW), MOST_ASLEEP_BYTES),
        ("bytes of one awake after a turn", (awake[1] - awake[0]) / 400, MOST_AWAKE_BYTES),
        ("p99 ms from message to request, 32 at work", many["working_p99"], MOST_P99_MS),
        ("p99 ms, 32 woken at once", many["woken_p99"], MOST_P99_MS),
        ("turns that did not come", many["starved"], 0),
        ("a turn with two listeners and one that stalls", child("--child", "watched"), MOST_WATCHED),
    ]
    for name, found, most in figures:
        print(f"{'ok ' if found <= most else 'BAD'} {name}: {found:.2f} (at most {most})")
    return 1 if any(found > most for _, found, most in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
