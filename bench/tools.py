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
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from hermes.config.paths import bound_home
from hermes.model_tools import get_tool_definitions, handle_function_call
from hermes.runtime.tool_executor import run_calls
from hermes.tools.registration import definitions_cache
from hermes.tools.registration.definitions import offered, select
from hermes.tools.registration.groups import groups
from hermes.tools.registration.manifest import ensure_builtins
from hermes.tools.registry import invalidate_check_fn_cache, registry
from hermes.tools.traits import Origin
from hermes.types import ToolCall
from tests.runtime.rooms import Followed, room, tool

ROUNDS = 200  # short ones: on a shared machine a short one is the more often undisturbed
TEXT = '{"ok": 1}'
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
TARGETS = {"memo_ratio": 3.0, "cold_ms": 50.0, "sync_us": 60.0, "pool_us": 150.0, "async_us": 100.0}


def sync_handler(_args: dict[str, object], **_: object) -> str:
    return TEXT


async def async_handler(_args: dict[str, object], **_: object) -> str:
    return TEXT


def best(times: int, *works: Callable[[], object]) -> list[float]:
    """Seconds for one call of each, in turns: the best of the rounds, which is what an idle machine does."""
    found = [float("inf")] * len(works)
    for _ in range(ROUNDS):
        gc.collect(0)
        for place, work in enumerate(works):
            started = time.perf_counter()
            for _ in range(times):
                work()
            found[place] = min(found[place], (time.perf_counter() - started) / times)
    return found


async def best_async(times: int, *works: Callable[[], Awaitable[object]]) -> list[float]:
    found = [float("inf")] * len(works)
    for _ in range(ROUNDS):
        gc.collect(0)
        for place, work in enumerate(works):
            started = time.perf_counter()
            for _ in range(times):
                await work()
            found[place] = min(found[place], (time.perf_counter() - started) / times)
    return found


def definitions() -> dict[str, float]:
    for number in range(len(registry.get_all_tool_names()), 50):  # as many as a full installation offers
        name = f"filler_{number}"
        schema = {"name": name, "description": "f", "parameters": SCHEMA}
        registry.register(name=name, toolset="bench", schema=schema, handler=sync_handler)
    made = get_tool_definitions(quiet_mode=True)
    copy_s, memo_s = best(
        1_000,
        lambda: made.copy(),  # noqa: PLW0108 - both sides pay for the same wrapper
        lambda: get_tool_definitions(quiet_mode=True),
    )
    names = select(groups(), None)

    def cold() -> None:
        invalidate_check_fn_cache()
        offered(names)

    cold_s, files_s = best(1, cold, lambda: definitions_cache.make(None, (), quiet=True))
    return {
        "tools": len(made),
        "copy_ns": copy_s * 1e9,
        "memo_ns": memo_s * 1e9,
        "memo_ratio": memo_s / copy_s,
        "cold_ms": cold_s * 1e3,
        "cold_with_files_ms": files_s * 1e3,
    }


def sync_dispatch() -> dict[str, float]:
    schema = {"name": "bench", "description": "b", "parameters": SCHEMA}
    registry.register(name="bench", toolset="bench", schema=schema, handler=sync_handler)
    args: dict[str, object] = {"n": 1}
    bare, ours = best(100, lambda: sync_handler(args), lambda: handle_function_call("bench", {"n": 1}, task_id="t"))
    return {"sync_us": (ours - bare) * 1e6}


async def turn_dispatch(folder: Path) -> dict[str, float]:
    """A call in a batch of its own: a sync handler in the pool, an async one, and an async one of a user's file."""
    args: dict[str, object] = {"n": 1}
    kinds: dict[str, tuple[Callable[..., object], Origin]] = {
        "pool": (sync_handler, "home"),
        "async": (async_handler, "builtin"),
        "own_async": (async_handler, "home"),
    }
    numbers = itertools.count()

    tools = [tool(name, handler, SCHEMA, origin=origin) for name, (handler, origin) in kinds.items()]
    async with room(folder, *tools, timeout_s=None) as it:

        async def call(name: str) -> None:
            await run_calls(it.ctx, [ToolCall("c", name, f'{{"n": {next(numbers)}}}')], Followed(it.events))
            it.events.seen.clear()

        (bare,) = best(1_000, lambda: sync_handler(args))
        (bare_async,) = await best_async(1_000, lambda: async_handler(args))
        found = await best_async(20, *(partial(call, name) for name in kinds))
    bares = (bare, bare_async, bare_async)
    return {f"{name}_us": (one - direct) * 1e6 for name, one, direct in zip(kinds, found, bares, strict=True)}


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
