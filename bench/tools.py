"""What the tools runtime adds to a call, against the bare call, measured in one run.

    PYTHONPATH=src python bench/tools.py

Definitions: the memo against copying a list, and a cold pass over all built-ins after imports. Dispatch: a trivial
tool through the whole pipeline, over calling its handler directly: from sync code, through the pool, and async.
"""

import asyncio
import gc
import itertools
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from hermes.config.paths import bound_home
from hermes.model_tools import get_tool_definitions, handle_function_call
from hermes.runtime.tool_executor import run_calls
from hermes.tools import memo
from hermes.tools.definitions import offered, select
from hermes.tools.groups import groups
from hermes.tools.manifest import ensure_builtins
from hermes.tools.registry import invalidate_check_fn_cache, registry
from hermes.types import ToolCall, ToolResult
from tests.runtime.rooms import room, tool

ROUNDS = 25
TEXT = '{"ok": 1}'
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
TARGETS = {"memo_ratio": 3.0, "cold_ms": 50.0, "sync_us": 60.0, "pool_us": 150.0, "async_us": 100.0}


def sync_handler(_args: dict[str, object], **_: object) -> str:
    return TEXT


async def async_handler(_args: dict[str, object], **_: object) -> str:
    return TEXT


def best(work: Callable[[], object], times: int) -> float:
    """Seconds for one call: the best of the rounds, which is what this machine does when nothing else runs."""
    found = []
    for _ in range(ROUNDS):
        gc.collect()
        started = time.perf_counter()
        for _ in range(times):
            work()
        found.append((time.perf_counter() - started) / times)
    return min(found)


async def best_async(work: Callable[[], Awaitable[object]], times: int) -> float:
    found = []
    for _ in range(ROUNDS):
        gc.collect()
        started = time.perf_counter()
        for _ in range(times):
            await work()
        found.append((time.perf_counter() - started) / times)
    return min(found)


def definitions() -> dict[str, float]:
    for number in range(len(registry.get_all_tool_names()), 50):  # as many as a full installation offers
        name = f"filler_{number}"
        schema = {"name": name, "description": "f", "parameters": SCHEMA}
        registry.register(name=name, toolset="bench", schema=schema, handler=sync_handler)
    made = get_tool_definitions(quiet_mode=True)
    copy_s = best(lambda: made.copy(), 20_000)  # noqa: PLW0108 - both sides pay for the same wrapper
    memo_s = best(lambda: get_tool_definitions(quiet_mode=True), 20_000)
    names = select(groups(), None)

    def cold() -> None:
        invalidate_check_fn_cache()
        offered(names)

    return {
        "tools": len(made),
        "copy_ns": copy_s * 1e9,
        "memo_ns": memo_s * 1e9,
        "memo_ratio": memo_s / copy_s,
        "cold_ms": best(cold, 2) * 1e3,
        "cold_with_files_ms": best(lambda: memo.make(None, None, quiet=True), 2) * 1e3,
    }


def sync_dispatch() -> dict[str, float]:
    schema = {"name": "bench", "description": "b", "parameters": SCHEMA}
    registry.register(name="bench", toolset="bench", schema=schema, handler=sync_handler)
    args: dict[str, object] = {"n": 1}
    bare = best(lambda: sync_handler(args), 20_000)
    ours = best(lambda: handle_function_call("bench", {"n": 1}, task_id="t"), 500)
    return {"sync_us": (ours - bare) * 1e6}


async def turn_dispatch(folder: Path) -> dict[str, float]:
    args: dict[str, object] = {"n": 1}
    bare = {
        "pool": best(lambda: sync_handler(args), 20_000),
        "async": await best_async(lambda: async_handler(args), 5_000),
    }
    handlers = {"pool": sync_handler, "async": async_handler}
    return {f"{name}_us": (await in_turn(folder, handler) - bare[name]) * 1e6 for name, handler in handlers.items()}


async def in_turn(folder: Path, handler: Callable[..., object]) -> float:
    """Seconds for one call of `handler` in a batch of its own."""
    numbers = itertools.count()

    async def persist(_results: Sequence[ToolResult]) -> None:
        raise AssertionError("one call is one wave")

    async with room(folder, tool("bench", handler, SCHEMA), timeout_s=None) as it:

        async def call() -> None:
            await run_calls(it.ctx, [ToolCall("c", "bench", f'{{"n": {next(numbers)}}}')], persist)
            it.events.seen.clear()

        await call()
        return await best_async(call, 200)


def main() -> None:
    with tempfile.TemporaryDirectory() as home, bound_home(Path(home)):
        ensure_builtins()
        found = definitions() | sync_dispatch() | asyncio.run(turn_dispatch(Path(home)))
    for name, value in found.items():
        target = TARGETS.get(name)
        verdict = "" if target is None else f"   target {target:g}: {'held' if value <= target else 'MISSED'}"
        print(f"{name:<20} {value:10.2f}{verdict}")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
