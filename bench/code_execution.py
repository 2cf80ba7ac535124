"""What a script costs: its start against bare Python, and a tool call from inside it against a direct one.

    python bench/code_execution.py [start] [calls]

Every ratio is measured in one run, the two sides taking turns; medians.
"""

import asyncio
import importlib
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
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from hermes.ops import CallClosed, CallJournalled, SessionCreated  # noqa: E402
from hermes.runtime.context import Services, TurnContext  # noqa: E402
from hermes.runtime.shared import RandomIds, SystemClock  # noqa: E402
from hermes.runtime.tool_executor import run_calls  # noqa: E402
from hermes.scope import TurnScope  # noqa: E402
from hermes.state.sqlite_store import SqliteStore  # noqa: E402
from hermes.testing.fakes import FixedGate, MemorySink  # noqa: E402
from hermes.tools.environments.local import LocalEnvironment, LocalOptions  # noqa: E402
from hermes.tools.environments.sandbox import SandboxOptions  # noqa: E402
from hermes.tools.hooks import Hooks  # noqa: E402
from hermes.tools.pool import DaemonPool  # noqa: E402
from hermes.tools.registry import Registered, ToolEntry, registry  # noqa: E402
from hermes.tools.shelf import FileShelf  # noqa: E402
from hermes.tools.supervisor.supervisor import ProcessSupervisor  # noqa: E402
from hermes.tools.traits import Traits, touches_nothing  # noqa: E402
from hermes.tools.view import SessionView  # noqa: E402
from hermes.types import ToolCall, text_of  # noqa: E402

RUNS = 41
CALLS = 1000
ROUNDS = 10


class Bench:
    """A turn with one trivial tool under a name that scripts may call."""

    def __init__(self, folder: Path, *, sandbox: bool) -> None:
        self.folder = folder
        self.pool, self.supervisor = DaemonPool(), ProcessSupervisor()
        options = SandboxOptions(mode="on", workspace=str(folder)) if sandbox else None
        env = {"PATH": os.environ["PATH"], "HOME": str(folder)}
        self.environment = LocalEnvironment(
            self.supervisor,
            str(folder),
            LocalOptions(env=env, source_bashrc=False, sandbox=options),
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

        async def persist(_: object) -> None:
            raise AssertionError("one call is one wave")

        (result,) = await run_calls(self.ctx, [call], persist)
        answer: dict[str, Any] = json.loads(text_of(result.content))
        return answer

    async def close(self) -> None:
        await self.environment.close()
        await self.supervisor.close()
        await self.store.close()


async def _echo(args: dict[str, Any], **_: object) -> str:
    return json.dumps({"echo": args["query"]})


def bare_python() -> None:
    subprocess.run([sys.executable, "-I", "-c", "print(1)"], check=True, stdout=subprocess.PIPE)


async def start(*, sandbox: bool) -> None:
    """`print(1)` as a script against `python -I -c "print(1)"` beside it."""
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name), sandbox=sandbox)
        async with bench.scope:
            await bench.store.commit(SessionCreated(session_id="s"))
            await bench.call("execute_code", code="print(1)")  # the keeper and the first snapshot
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
        await bench.close()
    base, value = statistics.median(raw) * 1000, statistics.median(ours) * 1000
    kind, limit = ("in bubblewrap", 2.0) if sandbox else ("no sandbox", 1.5)
    print(f"print(1), {kind:<16} {value:7.2f} ms / {base:7.2f} ms = {value / base:5.2f}x   at most {limit}x")


SCRIPT = """
import json, time
from hermes_tools import web_search
web_search("warm")
times = []
for n in range({calls}):
    began = time.perf_counter()
    web_search("q%d" % n)
    times.append(time.perf_counter() - began)
print(json.dumps(times))
"""


async def calls() -> None:
    """A call from inside a script against the same call through the executor with the same two commits.

    The two sides take turns, so that both see the same load of the machine.
    """
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name), sandbox=False)
        async with bench.scope:
            await bench.store.commit(SessionCreated(session_id="s"))
            direct: list[float] = []
            inside: list[float] = []
            for turn in range(ROUNDS):
                direct += [await direct_ms(bench, f"{turn}-{n}") for n in range(CALLS // ROUNDS)]
                answer = await bench.call("execute_code", code=SCRIPT.format(calls=CALLS // ROUNDS))
                inside += [seconds * 1000 for seconds in json.loads(answer["output"])]
            answer = await bench.call("execute_code", code=SCRIPT.format(calls=CALLS))
            long = [seconds * 1000 for seconds in json.loads(answer["output"])]
        await bench.close()
    value, base = statistics.median(inside), statistics.median(direct)
    print(f"a call from inside       {value:7.3f} ms - {base:7.3f} ms direct = {value - base:6.3f} ms over  under 1 ms")
    tenth = CALLS // 10
    first, last = statistics.median(long[:tenth]), statistics.median(long[-tenth:])
    print(f"1,000 calls in a script  {last:7.3f} ms last tenth / {first:7.3f} ms first = {last / first:5.2f}x")


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
