"""session_search in a turn: what it finds of earlier sessions, never of its own."""

import json
from typing import Any

from hermes import AIAgent
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import calls, says
from tests.state.memory_queries import MemorySessionStore


async def searched(store: MemorySessionStore, **args: Any) -> dict[str, Any]:
    model = ScriptedModel(calls("session_search", **args), says("Done."))
    agent = AIAgent(model=model, store=store, enabled_toolsets=["session_search"], session_id="now")
    done = await agent.arun_conversation("Where did the walrus live?")
    await agent.aclose()
    told: dict[str, Any] = json.loads([one for one in done["messages"] if one["role"] == "tool"][-1]["content"])
    return told


async def test_each_shape_is_chosen_by_its_arguments() -> None:
    store = MemorySessionStore()
    agent = AIAgent(model=ScriptedModel(says("In the bath.")), store=store, session_id="then")
    await agent.arun_conversation("The walrus lives where?")
    await agent.aclose()
    found = await searched(store, query="walrus", limit=99, window=0)
    assert [(one["session_id"], one["matched_role"]) for one in found["results"]] == [("then", "user")]
    assert (await searched(store))["mode"] == "browse"
    assert (await searched(store, session_id="then"))["mode"] == "read"
    place = found["results"][0]["match_message_id"]
    assert (await searched(store, query="x", session_id="then", around_message_id=place))["mode"] == "scroll"
    assert await searched(store, session_id="gone") == {"success": False, "error": "session_id not found: gone"}
    assert (await searched(store, query="walrus", role_filter="assistant"))["results"] == []
    assert (await searched(store, query="zeppelin"))["results"] == []


async def test_the_prompt_says_when_to_look_and_only_where_that_is_on_offer() -> None:
    for toolsets, is_told in ((["session_search"], True), (["file"], False)):
        agent = AIAgent(model=ScriptedModel(), store=MemorySessionStore(), enabled_toolsets=toolsets)
        parts = {part.name: part.text for part in (await agent.adescribe_prompt()).parts}
        assert ("session_search" in parts.get("2-guidance", "")) is is_told
        await agent.aclose()
