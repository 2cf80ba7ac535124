"""Children side by side against one child alone, in one run, with a model that takes 50 ms for each answer.

Run: python bench/delegation.py [RUNS]

one     a call with one child of five tool turns (six answers)
eight   a call with eight of them, against one; with the stagger of a provider that keeps prefixes
hundred a hundred children in 13 calls of at most eight, against 13 times one
"""

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from hermes import AIAgent, types
from hermes.config.load import bound_settings, load_settings
from hermes.models.endpoint import Endpoint, Quirks
from hermes.runtime.setup.process import shared
from hermes.scope import TurnScope
from hermes.seams import ModelRequest
from hermes.state import SqliteStore

LATENCY_S = 0.05
TURNS = 5
AT_ONCE = 8
MANY = 100
LIMITS = {"eight": 1.3, "hundred": 1.25}


class PacedModel:
    """Answers each child with five calls and a word, the parent with one call of delegate_task after the other."""

    name, provider, base_url = "paced", "bench", ""
    endpoint = Endpoint(model="paced", base_url="http://localhost", quirks=Quirks(cache_markers=True))

    def __init__(self, batches: list[int]) -> None:
        self._batches = batches

    async def stream(self, request: ModelRequest, scope: TurnScope) -> AsyncIterator[types.ModelEvent]:
        said = [message for unit in request.units for message in unit.messages]
        is_child = types.text_of(said[0].content).startswith("Task ")
        rounds = sum(1 for message in said if message.role == "assistant")
        if is_child:
            await asyncio.sleep(LATENCY_S)
            yield types.TextDelta("x")
        call: types.ToolCall | None = None
        if is_child and rounds < TURNS:
            tasks = [{"id": str(rounds), "content": "x", "status": "pending"}]
            call = types.ToolCall(f"c{rounds}", "todo", json.dumps({"todos": tasks}))
        elif not is_child and rounds < len(self._batches):
            goals = [{"goal": f"Task {rounds}.{number}"} for number in range(self._batches[rounds])]
            call = types.ToolCall(f"p{rounds}", "delegate_task", json.dumps({"tasks": goals}))
        words = "done" if call is None else ""
        message = types.Message(role="assistant", content=words, tool_calls=(call,) if call else ())
        yield types.ModelResponse(message=message, finish_reason="tool_calls" if call else "stop")


async def took(home: Path, batches: list[int]) -> float:
    """Seconds of a turn with these calls."""
    store = SqliteStore(home / f"{time.monotonic_ns()}.db")
    agent = AIAgent(model=PacedModel(batches), store=store, enabled_toolsets=["delegation", "todo"])
    started = time.perf_counter()
    done = await agent.arun_conversation("Go.")
    seconds = time.perf_counter() - started
    results: list[dict[str, Any]] = [message for message in done["messages"] if message["role"] == "tool"]
    assert sum(one["content"].count('"status": "completed"') for one in results) == sum(batches), results
    await agent.aclose()
    await store.close()
    return seconds


async def measured(home: Path, runs: int) -> None:
    hundred = [AT_ONCE] * (MANY // AT_ONCE) + [MANY % AT_ONCE]
    await took(home, [1])  # imports
    ones, eights, ratios = [], [], []
    for _ in range(runs):
        one, eight = await took(home, [1]), await took(home, [AT_ONCE])
        ones.append(one)
        eights.append(eight)
        ratios.append(eight / one)
    one = statistics.median(ones)
    print(f"one      {one * 1000:8.0f} ms")
    _tell("eight", statistics.median(eights), statistics.median(ratios))
    whole = await took(home, hundred)
    _tell("hundred", whole, whole / (len(hundred) * one))


def _tell(name: str, seconds: float, ratio: float) -> None:
    held = "held" if ratio <= LIMITS[name] else "NOT HELD"
    print(f"{name:8} {seconds * 1000:8.0f} ms  {ratio:5.2f} x  (at most {LIMITS[name]}: {held})")


async def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "config.yaml").write_text(f"delegation: {{max_concurrent_children: {AT_ONCE}}}\n")
        with bound_settings(load_settings(home)):
            await measured(home, runs)
        await shared.close()


if __name__ == "__main__":
    asyncio.run(main())
