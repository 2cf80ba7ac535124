"""Run turns until killed. What the store acknowledges, what is shown, and every effect is told on a pipe or in a file.

python killed_child.py HOME SESSION EFFECTS SEED
"""

import asyncio
import os
import random
import sys
from pathlib import Path
from typing import Any

import msgspec

from hermes import AIAgent
from hermes.ops import MessageAppended, SessionRecord, StoreOp
from hermes.seams import Effects, EventStore
from hermes.state import SqliteStore
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import Reply, calls, calls_with, says
from hermes.tools.registry import registry, tool_result
from hermes.tools.traits import Traits
from hermes.types import CallFinished, CallStarted, Event, TurnFinished, TurnStarted


class Lines:
    """The events that tell of something stored, as `--json` shows them."""

    def emit(self, event: Event) -> None:
        if isinstance(event, TurnStarted | CallStarted | CallFinished | TurnFinished):
            os.write(1, msgspec.json.encode(event) + b"\n")


class TellingStore:
    """A store that says on stdout what it has acknowledged."""

    def __init__(self, inner: EventStore) -> None:
        self._inner = inner

    async def commit(self, *ops: StoreOp) -> tuple[int, ...]:
        rows = await self._inner.commit(*ops)
        told = [str(row) for op, row in zip(ops, rows, strict=True) if isinstance(op, MessageAppended)]
        os.write(1, f"{' '.join(told)}\n".encode())
        return rows

    async def load(self, session_id: str, after: int = 0) -> SessionRecord | None:
        return await self._inner.load(session_id, after)

    async def put_blob(self, data: bytes) -> str:
        return await self._inner.put_blob(data)

    async def get_blob(self, digest: str) -> bytes:
        return await self._inner.get_blob(digest)

    async def close(self) -> None:
        await self._inner.close()


def add_effect_tool(effects: Path) -> None:
    """A tool whose effect can be counted: it appends the id of its call to a file."""

    async def effect(args: dict[str, Any], *, tool_call_id: str = "", **_: Any) -> str:
        with effects.open("ab", buffering=0) as file:
            file.write(f"{args['key']}\n".encode())
        await asyncio.sleep(random.random() / 500)
        return tool_result(done=args["key"])

    words = {"key": {"type": "string"}, "lane": {"type": "integer"}}
    schema = {
        "name": "effect",
        "description": "Do it.",
        "parameters": {"type": "object", "properties": words, "required": ["key", "lane"]},
    }
    traits = Traits(effects=lambda args, _: Effects(writes=frozenset({f"lane:{args['lane']}"})))
    registry.register(name="effect", toolset="testing", schema=schema, handler=effect, is_async=True, traits=traits)


def script(rng: random.Random, seed: str) -> list[Reply]:
    lines: list[Reply] = []
    for turn in range(200):
        for step in range(rng.randrange(3)):
            keys = [f"{seed}.{turn}.{step}.{n}" for n in range(rng.randrange(1, 6))]
            asked = [calls("effect", key=key, lane=rng.randrange(3)) for key in keys]
            if rng.randrange(20) == 0:
                asked.append(calls("terminal", command="sleep 3600 & sleep 0.02"))
            lines.append(sum(asked[1:], asked[0]) + says("working"))
        if rng.randrange(5) == 0:
            lines.append(calls_with("effect", '{"key": "cut'))
        lines.append(says(f"turn {turn} done"))
    return lines


async def main() -> None:
    home, session_id, effects, seed = sys.argv[1:5]
    add_effect_tool(Path(effects))
    rng = random.Random(seed)
    store = TellingStore(SqliteStore(Path(home) / "state.db"))
    model = ScriptedModel(*script(rng, seed))
    agent = AIAgent(model=model, store=store, session_id=session_id, cwd=home, sink=Lines())
    os.write(1, b"ready\n")
    for _ in range(200):
        await agent.arun_conversation("go on")


asyncio.run(main())
