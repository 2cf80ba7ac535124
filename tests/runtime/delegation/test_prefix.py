"""What children begin with: few tokens, the same ones for siblings, and one request ahead where a cache is filled."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from msgspec import json

from hermes import AIAgent, types
from hermes.config import paths
from hermes.models.endpoint import Endpoint, Quirks
from hermes.scope import TurnScope
from hermes.seams import ModelRequest
from hermes.testing.replies import calls, says
from tests.runtime.delegation.scripts import FamilyModel, results

FIXED_TOKENS = 2_000
CHARS_PER_TOKEN = 4
TASKS = [{"goal": "One."}, {"goal": "Two."}, {"goal": "Three."}]


class CachingModel(FamilyModel):
    """A provider that keeps prefixes; the first child's answer takes its time."""

    def __init__(self, *, is_caching: bool) -> None:
        scripts = {one["goal"]: [says(one["goal"])] for one in TASKS}
        super().__init__([calls("delegate_task", tasks=TASKS), says("Done.")], scripts)
        self.endpoint = Endpoint(model="m", base_url="http://localhost", quirks=Quirks(cache_markers=is_caching))
        self.seen: list[str] = []
        self.all_here = asyncio.Event()

    async def stream(self, request: ModelRequest, scope: TurnScope) -> AsyncIterator[types.ModelEvent]:
        goal = types.text_of(request.units[0].messages[0].content)
        self.seen.append(f"asked {goal}")
        if sum(1 for one in self.seen if one.startswith("asked") and "Go." not in one) == len(TASKS):
            self.all_here.set()
        if goal == "One." and not self.endpoint.quirks.cache_markers:
            await self.all_here.wait()  # would wait for ever if the others waited for it
        async for event in super().stream(request, scope):
            if isinstance(event, types.TextDelta):
                self.seen.append(f"heard {goal}")
            yield event


async def test_where_prefixes_are_kept_the_first_request_goes_ahead(store: Any) -> None:
    model = CachingModel(is_caching=True)
    done = await AIAgent(model=model, store=store).arun_conversation("Go.")
    order = [one for one in model.seen if "Go." not in one]
    assert order[:2] == ["asked One.", "heard One."]
    assert [one["status"] for one in results(done)] == ["completed"] * 3


async def test_elsewhere_all_start_at_once(store: Any) -> None:
    model = CachingModel(is_caching=False)
    async with asyncio.timeout(10):
        done = await AIAgent(model=model, store=store).arun_conversation("Go.")
    assert [one["status"] for one in results(done)] == ["completed"] * 3


async def test_what_every_child_costs_is_small(store: Any, tmp_path: Path, hermes_home: Path) -> None:
    (paths.made(hermes_home) / "SOUL.md").write_text("You are verbose. " * 500)
    model = FamilyModel([calls("delegate_task", goal="One.", toolsets=["file"]), says("Done.")], {"One.": [says("1")]})
    await AIAgent(model=model, store=store, cwd=str(tmp_path)).arun_conversation("Go.")
    (request,) = model.parts["One."].full_requests
    assert {tool.name for tool in request.tools} == {"read_file", "write_file", "patch", "search_files"}
    assert (len(request.system) + len(json.encode(request.tools))) / CHARS_PER_TOKEN <= FIXED_TOKENS
