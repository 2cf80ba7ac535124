"""Models that would spend without end, and a process that does: `python -m tests.models.spenders FILE AGENTS`."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from hermes.errors import BudgetExceeded
from hermes.models.attempts import Caps, SpendGuard
from hermes.runtime.setup.process import RandomIds, SystemClock
from hermes.scope import TurnScope
from hermes.seams import ModelRequest
from hermes.spend import Cap
from hermes.state.sqlite.store import SqliteStore
from hermes.types import Message, ModelEvent, ModelResponse, Usage
from tests.models.rooms import Room
from tests.models.wire_cases import asked

WRITTEN = 7  # tokens of each answer
CENTS = 7.0  # and what it costs


class Looping:
    """A model whose calls overlap, and that counts how many did."""

    name, provider, base_url = "looping", "testing", ""

    def __init__(self) -> None:
        self.most_at_once = 0
        self._now = 0

    async def stream(self, request: ModelRequest, scope: TurnScope) -> AsyncIterator[ModelEvent]:
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        try:
            await asyncio.sleep(0.005)  # the latency of a model, not a wait for anything
        finally:
            self._now -= 1
        message = Message(role="assistant", content="again")
        yield ModelResponse(message=message, finish_reason="stop", usage=Usage(1, WRITTEN), model=self.name)


def cents(_provider: str, _model: str, usage: Usage) -> tuple[float | None, str]:
    """A cent for each token that is written."""
    return None if usage.output_tokens is None else usage.output_tokens / 100, "user_override"


async def loop_until_refused(ask: Callable[[], Awaitable[Any]], most: int = 1000) -> int:
    """How many calls were made before a cap refused one."""
    for number in range(most):
        try:
            await ask()
        except BudgetExceeded:
            return number
    raise AssertionError("the cap was never reached")


async def _main(file: Path, agents: int) -> int:
    store, model, ids = SqliteStore(file), Looping(), RandomIds()
    made: list[int] = []

    async def agent() -> None:
        guard = SpendGuard(Caps(day=Cap(usd=1.0)))
        room = Room(model, store=store, price=cents, guard=guard, clock=SystemClock(), scope=TurnScope(), ids=ids)
        made.append(await loop_until_refused(lambda: room.ask(asked(max_tokens=WRITTEN))))

    async with asyncio.TaskGroup() as group:
        for _ in range(agents):
            group.create_task(agent())
    await store.close()
    return sum(made)


if __name__ == "__main__":
    sys.stdout.write(str(asyncio.run(_main(Path(sys.argv[1]), int(sys.argv[2])))))
