"""What a script costs: its start against bare Python, and a tool call from inside it against a direct one.

    python bench/code_execution.py [start] [calls]

Every ratio is measured in one run, the two sides taking turns: the medians of the best of some rounds, beside the
middle one, since what else runs on the machine can only add.
"""

import asyncio
import importlib
import itertools
import json
import logging
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from hermes.confinement.plan import PlanRequest  # noqa: E402
from hermes.ops import CallClosed, CallJournalled, SessionCreated  # noqa: E402
from hermes.runtime.context import Services, TurnContext  # noqa: E402
from hermes.runtime.setup.process import RandomIds, SystemClock  # noqa: E402
from hermes.runtime.tool_executor import run_calls  # noqa: E402
from hermes.scope import TurnScope  # noqa: E402
from hermes.state.sqlite.store import SqliteStore  # noqa: E402
from hermes.testing.fakes import FixedGate, MemorySink  # noqa: E402
from hermes.tools.calling.pool import DaemonPool  # noqa: E402
from hermes.tools.environments.local import Border, LocalEnvironment, LocalOptions  # noqa: E402
from hermes.tools.hooks import Hooks  # noqa: E402
from hermes.tools.registry import Registered, ToolEntry, registry  # noqa: E402
from hermes.tools.results.shelf import FileShelf  # noqa: E402
from hermes.tools.supervisor.supervisor import ProcessSupervisor  # noqa: E402
from hermes.tools.traits import Traits, touches_nothing  # noqa: E402
from hermes.tools.view import SessionView  # noqa: E402
from hermes.types import ToolCall, text_of  # noqa: E402
from tests.runtime.rooms import Followed  # noqa: E402

RUNS = 11
CALLS = 1000
ROUNDS = 5
TURNS = 20
LONG_SCRIPTS = 5


class Bench:
    """A turn with one trivial tool under a name that scripts may call."""

    def __init__(self, folder: Path, *, sandbox: bool) -> None:
        self.folder = folder
        self.pool, self.supervisor = DaemonPool(), ProcessSupervisor()
        border = Border(mode="on", request=PlanRequest(workspace=str(folder))) if sandbox else None
        env = {"PATH": os.environ["PATH"], "HOME": str(folder)}
        self.environment = LocalEnvironment(
            self.supervisor,
            str(folder),
            LocalOptions(env=env, source_bashrc=False, border=border),
            run_blocking=self.pool.run,
        )
        self.store = SqliteStore(folder / "state.db")
        self.scope = TurnScope(timeout_s=600)
        schema = {
            "name": "web_search",
            "description": "",
            "parameters": {
                "type": "object",
                "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
            },
        }
        tool = Registered(
            ToolEntry("web_search", "bench", schema, _echo, is_async=True), Traits(effects=touches_nothing), "builtin"
        )
        importlib.import_module("hermes.tools.builtin.execute_code")
        script = registry.get("execute_code")
        assert script is not None
        self.ctx = TurnContext(
            session_id="s",
            turn_id="t",
            task_id="s",
            services=Services(
                store=self.store,
                environment=self.environment,
                supervisor=self.supervisor,
                gate=FixedGate(),
                hooks=Hooks(self.pool),
                shelf=FileShelf(folder / "results", self.pool.run),
                pool=self.pool,
                clock=SystemClock(),
                ids=RandomIds(),
                log=logging.getLogger("bench"),
                settings={"code_execution": {"max_tool_calls": 10**9}},
            ),
            tools=SessionView.of(tool, script),
            scope=self.scope,
            sink=MemorySink(),
        )

    async def call(self, name: str, **args: Any) -> dict[str, Any]:
        call = ToolCall(RandomIds().new("call"), name, json.dumps(args))
        (result,) = await run_calls(self.ctx, [call], Followed(self.ctx.sink))
        answer: dict[str, Any] = json.loads(text_of(result.content))
        return answer

    async def close(self) -> None:
        await self.environment.close()
        await self.supervisor.close()
        await self.store.close()


WORKED: list[float] = []  # the processor time of this process at each call


async def _echo(args: dict[str, Any], **_: object) -> str:
    WORKED.append(time.process_time())
    return json.dumps({"echo": args["query"]})


def bare_python() -> None:
    subprocess.run([sys.executable, "-I", "-c", "print(1)"], check=True, stdout=subprocess.PIPE)


async def start(*, sandbox: bool) -> None:
    """`print(1)` as a script against `python -I -c "print(1)"` beside it."""
    ratios: list[tuple[float, float, float]] = []
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name), sandbox=sandbox)
        async with bench.scope:
            await bench.store.commit(SessionCreated(session_id="s"))
            await bench.call("execute_code", code="print(1)")  # the keeper and the first snapshot
            for _ in range(ROUNDS):
                raw: list[float] = []
                ours: list[float] = []
                for _ in range(RUNS):
                    began = time.perf_counter()
                    bare_python()
                    raw.append(time.perf_counter() - began)
                    began = time.perf_counter()
                    answer = await bench.call("execute_code", code="print(1)")
                    ours.append(time.perf_counter() - began)
                    assert answer["output"] == "1\n"
                base, value = statistics.median(raw) * 1000, statistics.median(ours) * 1000
                ratios.append((value / base, value, base))
        await bench.close()
    kind, limit = ("in bubblewrap", 2.0) if sandbox else ("no sandbox", 1.5)
    best, value, base = min(ratios)
    middle = statistics.median(ratio for ratio, _, _ in ratios)
    print(
        f"print(1), {kind:<16} {value:7.2f} ms / {base:7.2f} ms = {best:5.2f}x best, {middle:5.2f}x middle round"
        f"   at most {limit}x"
    )


SCRIPT = """
import json, time
from hermes_tools import web_search
web_search("warm")
wall, cpu = [], []
for n in range({calls}):
    began, worked = time.perf_counter(), time.process_time()
    web_search("q%d" % n)
    wall.append(round((time.perf_counter() - began) * 1000, 4))
    cpu.append(round((time.process_time() - worked) * 1000, 4))
print(json.dumps([wall, cpu]))
"""


async def calls() -> None:
    """A call from inside a script against the same call through the executor with the same two commits.

    The two sides take turns, so that both see the same load of the machine, and the best round of each counts. The
    processor time is that of both processes together, which another's load does not touch.
    """
    direct: list[Spent] = []
    inside: list[Spent] = []
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name), sandbox=False)
        async with bench.scope:
            await bench.store.commit(SessionCreated(session_id="s"))
            for turn in range(TURNS):
                WORKED.clear()
                wall = [await direct_ms(bench, f"{turn}-{n}") for n in range(CALLS // TURNS)]
                direct.append(Spent(statistics.median(wall), statistics.median(worked())))
                wall, cpu = await from_inside(bench, CALLS // TURNS)
                inside.append(Spent(statistics.median(wall), statistics.median(cpu)))
            long = [await from_inside(bench, CALLS) for _ in range(LONG_SCRIPTS)]
        await bench.close()
    for kind, field in (("wall", "wall"), ("processor", "cpu")):
        value, base = min(getattr(each, field) for each in inside), min(getattr(each, field) for each in direct)
        print(
            f"a call from inside, {kind:<9} {value:7.3f} ms - {base:7.3f} ms direct = {value - base:6.3f} ms over",
            end="",
        )
        print("   under 1 ms" if kind == "wall" else "")
    tenth = CALLS // 10
    for place, kind in enumerate(("wall", "processor")):
        first = min(statistics.median(times[place][:tenth]) for times in long)
        last = min(statistics.median(times[place][-tenth:]) for times in long)
        print(f"1,000 calls, {kind:<11} {last:7.3f} ms last tenth / {first:7.3f} ms first = {last / first:5.2f}x")


class Spent(NamedTuple):
    """Milliseconds of one call, in the middle of a round."""

    wall: float
    cpu: float


def worked() -> list[float]:
    """The processor time of this process from each call to the next, in milliseconds."""
    return [(after - before) * 1000 for before, after in itertools.pairwise(WORKED)]


async def from_inside(bench: Bench, count: int) -> tuple[list[float], list[float]]:
    """Milliseconds of each call of one script: on the clock, and of both processes' work."""
    WORKED.clear()
    answer = await bench.call("execute_code", code=SCRIPT.format(calls=count))
    wall, there = json.loads(answer["output"])
    return wall, [sum(pair) for pair in zip(worked(), there, strict=True)]


async def direct_ms(bench: Bench, mark: str) -> float:
    """As the loop does it: the started row before, the closing one after."""
    began = time.perf_counter()
    await bench.store.commit(CallJournalled("s", ToolCall(mark, "web_search")))
    await bench.call("web_search", query=mark)
    await bench.store.commit(CallClosed("s", mark, "ok"))
    return (time.perf_counter() - began) * 1000


def main() -> None:
    wanted = sys.argv[1:] or ["start", "calls"]
    if "start" in wanted:
        asyncio.run(start(sandbox=False))
        if shutil.which("bwrap"):
            asyncio.run(start(sandbox=True))
        else:
            print("print(1), in bubblewrap: not measured, bwrap is not installed")
    if "calls" in wanted:
        asyncio.run(calls())


if __name__ == "__main__":
    main()
