"""Ratios against raw baselines, all measured in this run; medians of at least 15.

bench/run            every figure
bench/run NAME...    only these: cold, first, turn, many, idle, install
"""

import asyncio
import os
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes import AIAgent
    from hermes.models.http.client import HttpClient
    from hermes.scope import TurnScope
    from hermes.seams import Body, HttpLimits, HttpStream

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
sys.path.insert(0, str(SRC))
RUNS = 15
AGENTS, TURNS = 32, 20


class Server:
    """The canned provider in a process of its own, so that its work is not counted as ours."""

    def __init__(self, process: "subprocess.Popen[bytes]", url: str) -> None:
        self.process = process
        self.url = url

    def arrival(self) -> float:
        """When the next request was complete."""
        assert self.process.stdout is not None
        return float(self.process.stdout.readline())


@contextmanager
def canned(latency_s: float = 0.0, *options: str) -> Iterator[Server]:
    args = [sys.executable, str(ROOT / "bench" / "canned.py"), str(latency_s), *options]
    with subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield Server(process, f"http://127.0.0.1:{int(process.stdout.readline())}/v1")
        process.stdin.close()


def environ(home: str) -> dict[str, str]:
    """For children: as installed programs run, that is with their modules compiled."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "HERMES_HOME": home, "PYTHONPATH": str(SRC), "NO_COLOR": "1"}


def median_ms(work: Callable[[], object], runs: int = RUNS) -> float:
    times = []
    for _ in range(runs + 1):
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times[1:])


def line(name: str, value: float, base: float, limit: float | None, unit: str = "ms", *, least: bool = False) -> None:
    ratio = value / base if base else float("nan")
    bound = "" if limit is None else f"   {'at least' if least else 'at most'} {limit:g}x"
    print(f"{name:<44} {value:9.2f} {unit:<3} / {base:9.2f} {unit:<3} = {ratio:6.2f}x{bound}", flush=True)


def bare_python_ms(runs: int = RUNS) -> float:
    return median_ms(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True), runs)


def cold() -> None:
    """Cold start of `hermes --version` against bare Python."""
    with tempfile.TemporaryDirectory() as home:
        script = Path(home) / "hermes"
        script.write_text("import sys\nfrom hermes.surfaces.cli.main import main\nsys.exit(main())\n")
        args = [sys.executable, "-P", str(script), "--version"]
        ours = median_ms(lambda: subprocess.run(args, check=True, env=environ(home), stdout=subprocess.DEVNULL))
    line("hermes --version / bare python", ours, bare_python_ms(), 4)


def first() -> None:
    """From the start of the process to the first request on the wire."""
    with canned(0.0, "--arrivals") as server, tempfile.TemporaryDirectory(prefix=".bench-", dir=ROOT) as folder:
        script = Path(folder) / "hermes"
        script.write_text("import sys\nfrom hermes.surfaces.cli.main import main\nsys.exit(main())\n")
        ask = [sys.executable, "-P", str(script), "chat", "-q", "Hi", "--model", "m", "--base-url", server.url]
        floor = [sys.executable, str(ROOT / "bench" / "floor.py"), server.url, f"{folder}/floor.db"]
        ours: list[float] = []
        least: list[float] = []
        bare: list[float] = []
        for _ in range(RUNS + 1):
            bare.append(bare_python_ms(1))
            for args, times, requests in ((floor, least, 1), (ask, ours, 2)):
                start = time.monotonic()
                subprocess.run(args, check=True, env=environ(f"{folder}/home"), stdout=subprocess.DEVNULL, cwd=folder)
                arrivals = [server.arrival() for _ in range(requests)]
                times.append((arrivals[0] - start) * 1000)
        mine, base, bottom = (statistics.median(times[1:]) for times in (ours, least, bare))
        line("first request / bench/floor", mine, base, 1.6)
        line("first request / bare python", mine, bottom, 25)


Statement = tuple[str, tuple[object, ...]]


class Recording:
    """A connection that notes each statement of a commit on its way."""

    def __init__(self, conn: sqlite3.Connection, into: list[Statement]) -> None:
        self._conn = conn
        self._into = into

    def execute(self, sql: str, values: tuple[object, ...] = ()) -> sqlite3.Cursor:
        self._into.append((sql, values))
        return self._conn.execute(sql, values)


@contextmanager
def recorded_commits() -> Iterator[list[list[Statement]]]:
    """The statements of every commit while the block runs, one list per commit."""
    from hermes.state.sqlite.store_ops_sql import Plan

    commits: list[list[Statement]] = []
    run = Plan.run

    def noted(self: Plan, conn: sqlite3.Connection) -> tuple[int, ...]:
        commits.append([])
        return run(self, Recording(conn, commits[-1]))  # type: ignore[arg-type]

    Plan.run = noted  # type: ignore[method-assign]
    try:
        yield commits
    finally:
        Plan.run = run  # type: ignore[method-assign]


def replay(conn: sqlite3.Connection, commit: list[Statement]) -> None:
    """The same commit, as short as it can be written."""
    conn.execute("BEGIN IMMEDIATE")
    for sql, values in commit:
        conn.execute(sql, values)
    conn.execute("COMMIT")


async def _raw_turn(
    http: "HttpClient", requests: "list[Request]", commits: list[list[Statement]], conn: sqlite3.Connection
) -> None:
    from hermes.scope import TurnScope

    for number, (url, headers, body) in enumerate(requests):
        replay(conn, commits[2 * number])
        async for _ in http.post_stream(url, headers, body, TurnScope()):
            pass
        replay(conn, commits[2 * number + 1])


def turn() -> None:
    """A turn with one tool call at 50 and at 500 turns of history, against its two exchanges and its four commits."""
    asyncio.run(_turn())


Request = tuple[str, Mapping[str, str], "Body"]
Sample = tuple[float, float, float]  # seconds: the turn, the raw exchange with its commits, the turn's CPU


class RecordingHttp:
    """`HttpStream` that notes each request on its way: address, headers and body."""

    def __init__(self, inner: "HttpStream", into: list[Request]) -> None:
        self._inner = inner
        self._into = into

    def post_stream(
        self, url: str, headers: Mapping[str, str], body: "Body", scope: "TurnScope", limits: "HttpLimits"
    ) -> AsyncIterator[bytes]:
        self._into.append((url, headers, body))
        return self._inner.post_stream(url, headers, body, scope, limits)


async def _recorded_requests(agent: "AIAgent") -> "tuple[list[Request], HttpClient]":
    """A list that grows by each request that the agent sends from now on, and the client that sends them.

    The raw exchanges go through the same client, and so over the same connections: with large bodies the windows of
    two connections can differ by a tenth of a turn for as long as they live.
    """
    requests: list[Request] = []
    model = (await agent._assembled()).client.model
    http: HttpClient = model._http  # type: ignore[attr-defined]
    model._http = RecordingHttp(http, requests)  # type: ignore[attr-defined]
    return requests, http


async def _turn() -> None:
    from hermes import AIAgent
    from hermes.runtime.setup.process import shared
    from hermes.state import SqliteStore
    from hermes.surfaces.cli.gc_at_start import settle

    with (
        canned() as server,
        tempfile.TemporaryDirectory(prefix=".bench-", dir=ROOT) as folder,
        recorded_commits() as commits,
    ):
        os.environ["HERMES_HOME"] = folder
        agents = {turns: AIAgent(model="m", base_url=server.url, api_key="k", cwd=folder) for turns in (50, 500)}
        sent = {turns: await _recorded_requests(agent) for turns, agent in agents.items()}
        SqliteStore(f"{folder}/raw.db").close_sync()  # the same tables and indexes
        conn = sqlite3.connect(f"{folder}/raw.db", isolation_level=None)
        conn.execute("PRAGMA synchronous=FULL")
        settle()  # as `hermes` does when it has started
        for turns, agent in agents.items():
            for _ in range(turns):
                await agent.arun_conversation("again")
        for commit in commits:
            replay(conn, commit)
        samples: dict[int, list[Sample]] = {turns: [] for turns in agents}
        for _ in range(150):
            for turns, agent in agents.items():  # in turns: the machine's own speed changes from second to second
                commits.clear()
                samples[turns].append(await _sample(agent, *sent[turns], commits, conn))
        figures = {turns: _medians_ms(found) for turns, found in samples.items()}
        for turns, (mine, base, used) in figures.items():
            line(f"tool turn at {turns} / raw exchange + commits", mine, base, 1.5)
            print(f"{'':<44} {used:9.2f} ms  of CPU")
        line("turn at 500 / turn at 50", figures[500][0], figures[50][0], 1.5)
        line("turn at 500 / turn at 50, CPU", figures[500][2], figures[50][2], 1.5)
        conn.close()
        for agent in agents.values():
            await agent.aclose()
        await shared.close()


async def _sample(
    agent: "AIAgent",
    requests: list[Request],
    http: "HttpClient",
    commits: list[list[Statement]],
    conn: sqlite3.Connection,
) -> Sample:
    requests.clear()
    start, used = time.perf_counter(), time.process_time()
    await agent.arun_conversation("again")
    ours, cpu = time.perf_counter() - start, time.process_time() - used
    assert (len(requests), len(commits)) == (2, 4)
    start = time.perf_counter()
    await _raw_turn(http, requests, commits, conn)
    return ours, time.perf_counter() - start, cpu


def _medians_ms(samples: list[Sample]) -> Sample:
    ours, raw, cpu = (statistics.median(column) * 1000 for column in zip(*samples, strict=True))
    return ours, raw, cpu


def many() -> None:
    """32 agents of 20 turns at 50 ms a call, against the raw client with the requests of such an agent."""
    asyncio.run(_many())


async def _many() -> None:
    from hermes import AIAgent
    from hermes.runtime.setup.process import shared
    from hermes.scope import TurnScope
    from hermes.surfaces.cli.gc_at_start import settle

    with canned(0.05) as server, tempfile.TemporaryDirectory(prefix=".bench-", dir=ROOT) as folder:
        os.environ["HERMES_HOME"] = folder
        agents = [AIAgent(model="m", base_url=server.url, api_key="k", cwd=folder) for _ in range(AGENTS)]
        requests, http = await _recorded_requests(agents[0])

        async def ours(agent: AIAgent) -> None:
            for _ in range(TURNS):
                await agent.arun_conversation("go")

        async def raw(_agent: AIAgent) -> None:
            for url, headers, body in requests:
                async for _ in http.post_stream(url, headers, body, TurnScope()):
                    pass

        async def rate(work: Callable[[AIAgent], Coroutine[None, None, None]]) -> float:
            start = time.perf_counter()
            async with asyncio.TaskGroup() as group:
                for agent in agents:
                    group.create_task(work(agent))
            return AGENTS * len(requests) / (time.perf_counter() - start)

        settle()  # as `hermes` does when it has started
        rates: list[tuple[float, float]] = []
        for _ in range(RUNS):
            requests.clear()
            rates.append((await rate(ours), await rate(raw)))
        mine, base = (statistics.median(column) for column in zip(*rates, strict=True))
        line(f"{AGENTS} agents x {TURNS} turns / raw client", mine, base, 0.9, "c/s", least=True)
        for agent in agents:
            await agent.aclose()
        await shared.close()


def idle() -> None:
    """Memory of 1,000 agents that have each had one turn and wait."""
    code = (
        "import asyncio, os, sys\n"
        "from hermes import AIAgent\n"
        "from hermes.testing.model import ScriptedModel\n"
        "from hermes.testing.replies import says\n"
        "def rss():\n"
        "    return int(open('/proc/self/statm').read().split()[1]) * os.sysconf('SC_PAGE_SIZE') / 1e6\n"
        "async def main():\n"
        "    agents = [AIAgent(model=ScriptedModel(says('x' * 2000)), cwd='/tmp') for _ in range(1000)]\n"
        "    for agent in agents:\n"
        "        await agent.arun_conversation('hello ' * 200)\n"
        "    print(rss())\n"
        "asyncio.run(main())\n"
    )
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=ROOT) as home:
        out = subprocess.run([sys.executable, "-c", code], check=True, env=environ(home), capture_output=True).stdout
    print(f"{'1,000 idle agents':<44} {float(out):9.1f} MB    at most 150 MB")


def install() -> None:
    """Size of the core install."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [f"{folder}/bin/python", "-m", "pip"]
        before = {path.name for path in Path(folder).glob("lib/*/site-packages/*.dist-info")}
        size_before = _megabytes(Path(folder))
        args = [*pip, "install", "-q", "--no-compile", "-c", str(ROOT / "constraints.txt"), str(ROOT)]
        subprocess.run(args, check=True)
        after = {path.name for path in Path(folder).glob("lib/*/site-packages/*.dist-info")} - before
        size = _megabytes(Path(folder)) - size_before
    print(f"{'core install':<44} {len(after):9d} distributions, {size:.1f} MB    at most 25 and 60 MB")


def _megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink()) / 1e6


FIGURES: dict[str, Callable[[], None]] = {
    "cold": cold,
    "first": first,
    "turn": turn,
    "many": many,
    "idle": idle,
    "install": install,
}


def main() -> int:
    wanted = sys.argv[1:] or list(FIGURES)
    unknown = [name for name in wanted if name not in FIGURES]
    if unknown:
        print(f"no figure {unknown[0]!r}; there are: {', '.join(FIGURES)}", file=sys.stderr)
        return 2
    print(f"(Python {sys.version.split()[0]} of {sys.base_prefix}: how it was built moves some of the ratios)")
    for name in wanted:
        FIGURES[name]()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(f"{'(peak memory of this program)':<44} {peak:9.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
