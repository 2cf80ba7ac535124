"""What plugins cost: a start with 50 that are on and not used, and a call that an observer is told of.

    PYTHONPATH=src:. python bench/plugins.py [--rounds 9]

Both homes are started in turns, in one run, against the scripted server on loopback; what counts is the ratio of the
medians. The observer's cost is the difference of two loops over the same calls, in one process. No figure is a test.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.start_ratio import compare_starts
from hermes.tools.hook_bus import CallEnd, CallFacts, told
from hermes.tools.hooks import Hooks

PLUGINS = 50
CALLS = 5000
CODE = """
from hermes.tools.registry import tool_result


def handler(args, **kw):
    return tool_result(number={number})


def register(ctx):
    ctx.register_skill("guide", __file__.replace("__init__.py", "SKILL.md"))
    ctx.register_command("unused-{number}", lambda words: "never")
"""


def fill(home: Path) -> None:
    """Plugins that are on and bring commands and skills nobody uses: they add nothing to a request."""
    for number in range(PLUGINS):
        folder = home / "plugins" / f"unused-{number}"
        folder.mkdir(parents=True)
        (folder / "plugin.yaml").write_text(f"name: unused-{number}\nversion: '1'\n")
        (folder / "__init__.py").write_text(CODE.format(number=number))
        (folder / "SKILL.md").write_text("---\nname: guide\ndescription: A guide.\n---\n\nNothing.\n")
    names = ", ".join(f"unused-{number}" for number in range(PLUGINS))
    (home / "config.yaml").write_text(f"plugins:\n  enabled: [{names}]\n")


async def per_call(hooks: Hooks) -> float:
    """Seconds that the hooks after a call take of it."""
    facts = CallFacts(name="terminal", args={"command": "ls"}, session_id="s", tool_call_id="c")
    taken = []
    for _ in range(CALLS):
        began = time.perf_counter()
        await told(hooks, facts, CallEnd(content='{"output": "x"}', duration_ms=1.0))
        taken.append(time.perf_counter() - began)
        if len(taken) % 500 == 0:
            await asyncio.sleep(0.05)  # so that the queue does not overflow: an agent's calls are further apart
    return statistics.median(taken)


async def observer_cost() -> float:
    """Microseconds that an observer adds to a call."""
    heard: list[Any] = []

    def observer(**facts: Any) -> None:
        heard.append(facts["tool_name"])

    silent, loud = Hooks(), Hooks()
    loud.add("post_tool_call", observer, owner="audit", kind="observer")
    cost = (await per_call(loud)) - (await per_call(silent))
    await loud.close()
    assert len(heard) + sum(loud.lost.values()) == CALLS
    return cost * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as place:
        homes = {"none": Path(place, "none"), "50": Path(place, "many")}
        for home in homes.values():
            home.mkdir()
        fill(homes["50"])
        (homes["none"] / "config.yaml").write_text("{}\n")
        told = compare_starts(homes, rounds)
        print(f"{told} (bar: 1.05)")
    print(f"an observer of tool calls: {asyncio.run(observer_cost()):.1f} µs a call (bar: 20)")


if __name__ == "__main__":
    main()
