"""MCP: what a call costs beyond the bare SDK, and what ten slow servers cost a first request.

    PYTHONPATH=src python bench/mcp.py [--calls 600] [--rounds 15] [--starts 12]

The calls go to the same open session of the same server, each time one through the SDK alone and one through
validation, gate, hooks, redaction and fence, in changing order; the figure is the median of what the second cost of the
first. The commits of an iteration are those of any tool, not counted. The hardest server is one that answers at once,
with no SDK of its own. First requests are timed without servers and with ten that were seen before and answer nothing
any more, by turns: in a process that is warm, and from the start of a command to the bytes at a provider. No figure
here is a test.
"""

import argparse
import asyncio
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from hermes import AIAgent
from hermes.runtime.context import Prepared, TurnContext
from hermes.runtime.setup.process import shared
from hermes.runtime.tool_executor import through_stages
from hermes.scope import TurnScope
from hermes.testing.fakes import MemorySink
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import says
from hermes.tools.results.tool_result import fence
from hermes.types import ToolCall

ROOT = Path(__file__).resolve().parents[1]
SERVERS = ROOT / "tests" / "tools" / "mcp"
WARM = 30
COMMIT_EVERY = 25
WRAPPED = "import runpy, sys\nsys.argv = [{server!r}, *{modes!r}]\nrunpy.run_path({server!r}, run_name='__main__')\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--starts", type=int, default=12)
    options = parser.parse_args()
    # This file has the name of the SDK, which is imported by the first connection.
    sys.path[:] = [folder for folder in sys.path if Path(folder or ".").resolve() != Path(__file__).resolve().parent]
    with tempfile.TemporaryDirectory() as place:
        home, with_ten = Path(place, "home"), Path(place, "with-ten")
        os.environ["HERMES_HOME"] = str(home)
        for words, tool, server in (
            ("a server that answers at once", "echo", [str(SERVERS / "bare_server.py")]),
            ("a server on the Python SDK", "shout", [str(SERVERS / "sdk_server.py"), "stdio"]),
        ):
            write_home(home, {"s0": server})
            asyncio.run(overhead(words, tool, options.calls))
        work = Path(place, "work")
        work.mkdir()
        # What servers see, wherever temporary files are.
        os.chdir(work)  # noqa: TID251 - no part of the runtime
        write_home(home, {})
        see_ten(with_ten, work / "server.py")
        warm_requests(home, with_ten, options.rounds)
        first_starts(home, with_ten, options.starts)


def write_home(home: Path, servers: dict[str, list[str]], **more: Any) -> None:
    """A home whose settings have these servers."""
    home.mkdir(exist_ok=True)
    entries = {name: {"command": sys.executable, "args": args} for name, args in servers.items()}
    (home / "config.yaml").write_text(yaml.safe_dump({"mcp_servers": entries, **more}))


# -- a call -----------------------------------------------------------------------------------------------------------


async def overhead(words: str, tool: str, count: int) -> None:
    """What a call through us costs of one through the SDK, pair by pair."""
    agent = AIAgent(model=ScriptedModel(says("Hi.")), cwd=os.environ["HERMES_HOME"])
    made = await agent._assembled()
    client = made.services.memo["mcp"].client()
    await client.reach_all()
    await agent.arun_conversation("Hi")
    link = await client.servers["s0"].link()
    view = await made.tools.view(await made.store.load(agent.session_id))
    turn = TurnContext(
        session_id=agent.session_id,
        turn_id="bench",
        task_id="bench",
        services=made.services,
        tools=view,
        scope=TurnScope("bench"),
        sink=MemorySink(),
    )
    name, chance = f"mcp__s0__{tool}", random.Random(31)

    async def bare(number: int) -> None:
        await link.session.call_tool(tool, {"text": f"hello {number}a " * 15})

    async def ours(number: int) -> None:
        args = view.check(name, {"text": f"hello {number}b " * 15})
        call = ToolCall(id=f"c{number}", name=name, arguments="{}")
        asked = Prepared(call, name, args, view.rules(name))
        result = await through_stages(turn.for_call(asked, turn.scope.child(call.id)))
        fence(result.content, name, "mcp")

    taken: dict[Any, list[float]] = {bare: [], ours: []}
    for number in range(count + WARM):
        for way in chance.sample((bare, ours), 2):
            began = time.perf_counter()
            await way(number)
            taken[way].append(time.perf_counter() - began)
        if number % COMMIT_EVERY == 0:
            await made.store.commit_rest()  # what goes with the result in a turn
    sdk, hermes = taken[bare][WARM:], taken[ours][WARM:]
    ratio = statistics.median(one / other for one, other in zip(hermes, sdk, strict=True))
    both = f"sdk {statistics.median(sdk) * 1000:.2f} ms, hermes {statistics.median(hermes) * 1000:.2f} ms"
    print(f"a call to {words}: {both}, ratio {ratio:.3f}")
    await agent.aclose()
    await shared.close()


# -- the first request ------------------------------------------------------------------------------------------------


def see_ten(home: Path, file: Path) -> None:
    """Have ten servers that were seen by this home; from now on, none of them answers."""
    from hermes.config.load import load_settings
    from hermes.host.mcp_care import McpCare

    server, servers = str(SERVERS / "bare_server.py"), {f"s{number}": [str(file)] for number in range(10)}
    file.write_text(WRAPPED.format(server=server, modes=[]))
    write_home(home, servers)
    care = McpCare(load_settings(home))
    for config in care.configs():
        found = care.trial(config).manifest
        assert found is not None
        care.keep(found, pins=True)
    file.write_text(WRAPPED.format(server=server, modes=["slow"]))


def warm_requests(without: Path, with_ten: Path, rounds: int) -> None:
    """From a new agent to its first request, in this process; each home was used before."""
    taken: dict[Path, list[float]] = {without: [], with_ten: []}
    for number in range(rounds + 2):
        for home in by_turns(number, without, with_ten):
            os.environ["HERMES_HOME"] = str(home)
            taken[home].append(asyncio.run(_first_request()))
    none, ten = taken[without][2:], taken[with_ten][2:]
    times = f"none {statistics.median(none) * 1000:.1f} ms, ten slow servers {statistics.median(ten) * 1000:.1f} ms"
    best = f"best {min(none) * 1000:.1f} and {min(ten) * 1000:.1f} ms"
    print(f"first request of a new agent in a warm process: {times} ({best})")


def by_turns(number: int, one: Path, other: Path) -> tuple[Path, Path]:
    return (one, other) if number % 2 else (other, one)


async def _first_request() -> float:
    began, sent = time.perf_counter(), 0.0
    model = ScriptedModel(says("Hi."))
    stream = model.stream

    def watched(*args: object) -> object:
        nonlocal sent
        sent = time.perf_counter() - began
        return stream(*args)  # type: ignore[arg-type]  # as it was called

    model.stream = watched  # type: ignore[method-assign,assignment]  # only watched
    agent = AIAgent(model=model)
    await agent.arun_conversation("Hi")
    await agent.aclose()
    await shared.close()
    return sent


def first_starts(without: Path, with_ten: Path, starts: int) -> None:
    """From the start of `hermes chat -q` to its request at a provider, by turns; each home was used before."""
    argv = (sys.executable, str(ROOT / "bench" / "canned.py"), "0", "--arrivals", "--text")
    command = (sys.executable, "-m", "hermes.surfaces.cli.main", "chat", "-Q", "-q", "Hi")
    taken: dict[Path, list[float]] = {without: [], with_ten: []}
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as provider:
        assert provider.stdout is not None
        assert provider.stdin is not None
        url = f"http://127.0.0.1:{provider.stdout.readline().strip()}/v1"
        model = {"model": {"default": "canned", "provider": "custom", "base_url": url}}
        environ = {"PYTHONPATH": str(ROOT / "src"), "OPENAI_API_KEY": "none"}
        environ |= {name: os.environ[name] for name in ("PATH", "HOME")}
        for home in taken:
            settings = yaml.safe_load((home / "config.yaml").read_text())
            quiet = {"auxiliary": {"title_generation": {"enabled": False}}}
            (home / "config.yaml").write_text(yaml.safe_dump({**settings, **model, **quiet}))
        for number in range(starts + 2):
            for home in by_turns(number, without, with_ten):
                began = time.monotonic()
                with subprocess.Popen(
                    command,
                    env={**environ, "HERMES_HOME": str(home)},
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                ) as asking:
                    taken[home].append(float(provider.stdout.readline()) - began)
                    asking.terminate()  # what comes later must not reach into the next one
        provider.stdin.close()
    none, ten = taken[without][2:], taken[with_ten][2:]
    ratio = statistics.median(one / other for one, other in zip(ten, none, strict=True))
    times = f"none {statistics.median(none) * 1000:.0f} ms, ten slow servers {statistics.median(ten) * 1000:.0f} ms"
    best = f"best {min(none) * 1000:.0f} and {min(ten) * 1000:.0f} ms"
    print(f"first request of `hermes chat -q` from its start: {times} ({best}), ratio {ratio:.3f}")


if __name__ == "__main__":
    main()
