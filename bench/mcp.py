"""MCP: what a call costs beyond the bare SDK, and what ten slow servers cost a first request.

    PYTHONPATH=src python bench/mcp.py [--calls 300] [--rounds 7]

The calls go to the same open session of the same server, in turns, in one run: once through the SDK alone, once through
validation, gate, hooks, redaction and fence. The commits of an iteration are those of any tool, not counted. No figure
here is a test.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

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

SERVER = Path(__file__).parents[1] / "tests" / "tools" / "mcp" / "bare_server.py"


def write_home(home: Path, count: int, *modes: str) -> None:
    home.mkdir(exist_ok=True)
    entry = {"command": sys.executable, "args": [str(SERVER), *modes]}
    text = yaml.safe_dump({"mcp_servers": {f"s{number}": entry for number in range(count)}})
    (home / "config.yaml").write_text(text)


async def overhead(count: int) -> None:
    """Medians of a call through the SDK and through us, alternating."""
    agent = AIAgent(model=ScriptedModel(says("Hi.")), cwd=os.environ["HERMES_HOME"])
    made = await agent._assembled()
    client = made.services.memo["mcp"].client()
    await client.reach_all()
    await agent.arun_conversation("Hi")
    link = await client.servers["s0"].link()
    record = await made.store.load(agent.session_id)
    view = await made.tools.view(record)
    turn = TurnContext(
        session_id=agent.session_id,
        turn_id="bench",
        task_id="bench",
        services=made.services,
        tools=view,
        scope=TurnScope("bench"),
        sink=MemorySink(),
    )
    name, args = "mcp__s0__echo", {"text": "hello " * 20}
    taken: dict[str, list[float]] = {"sdk": [], "hermes": []}
    for number in range(count + 20):
        began = time.perf_counter()
        await link.session.call_tool("echo", args)
        sdk = time.perf_counter() - began
        began = time.perf_counter()
        fitting = view.check(name, args)
        call = ToolCall(id=f"c{number}", name=name, arguments="{}")
        asked = Prepared(call, name, fitting, view.rules(name))
        result = await through_stages(turn.for_call(asked, turn.scope.child(call.id)))
        fence(result.content, name, "mcp")
        ours = time.perf_counter() - began
        if number >= 20:
            taken["sdk"].append(sdk)
            taken["hermes"].append(ours)
    sdk, ours = statistics.median(taken["sdk"]), statistics.median(taken["hermes"])
    print(f"a call: sdk {sdk * 1000:.2f} ms, hermes {ours * 1000:.2f} ms, ratio {ours / sdk:.2f}")
    await agent.aclose()
    await shared.close()


async def first_request(home: Path) -> float:
    """Seconds from a new agent to its first request."""
    began, sent = time.perf_counter(), 0.0
    model = ScriptedModel(says("Hi."))
    stream = model.stream

    def watched(*args: object) -> object:
        nonlocal sent
        sent = time.perf_counter() - began
        return stream(*args)  # type: ignore[arg-type]  # as it was called

    model.stream = watched  # type: ignore[method-assign,assignment]  # only watched
    agent = AIAgent(model=model, cwd=str(home))
    await agent.arun_conversation("Hi")
    await agent.aclose()
    await shared.close()
    return sent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    # This file has the name of the SDK, which is imported by the first connection.
    sys.path[:] = [folder for folder in sys.path if Path(folder or ".").resolve() != Path(__file__).resolve().parent]
    with tempfile.TemporaryDirectory() as place:
        home = Path(place, "home")
        os.environ["HERMES_HOME"] = str(home)
        write_home(home, 1)
        asyncio.run(overhead(options.calls))
        write_home(home, 10)
        from hermes.config.load import load_settings
        from hermes.host.mcp_care import McpCare

        care = McpCare(load_settings(home))
        for config in care.configs():
            found = care.trial(config).manifest
            assert found is not None
            care.keep(found, pins=True)
        taken: dict[str, list[float]] = {"none": [], "ten": []}
        for number in range(options.rounds + 2):
            for name in sorted(taken, reverse=bool(number % 2)):
                write_home(home, 10 if name == "ten" else 0)
                seconds = asyncio.run(first_request(home))
                if number >= 2:
                    taken[name].append(seconds)
        none, ten = statistics.median(taken["none"]), statistics.median(taken["ten"])
        print(f"first request: none {none * 1000:.1f} ms, ten servers {ten * 1000:.1f} ms, ratio {ten / none:.3f}")


if __name__ == "__main__":
    main()
