"""A compression is a break that is allowed: the session that goes on offers what servers have come to offer."""

from pathlib import Path

from hermes.testing.replies import calls, says
from hermes.types import text_of
from tests.tools.mcp.mcp_room import bare, body, eventually, mcp_room

DONE = says("Done.")


async def test_new_tools_are_offered_after_a_compression(hermes_home: Path) -> None:
    grow = calls("mcp__bare__grow")
    talk = [says("x " * 400) for _ in range(12)]
    script = (grow, DONE, *talk, says("A summary."), calls("mcp__bare__novelty"), DONE)
    async with mcp_room(hermes_home, {"bare": bare()}, *script) as room:
        await room.ask()
        client = await room.client()
        await eventually(lambda: "mcp__bare__novelty" in {tool.name for tool in client.offered()})
        for number in range(12):
            await room.agent.arun_conversation(f"Tell me more, {number}.")
        offers = {tuple(tool.name for tool in one.tools) for one in room.model.full_requests}
        assert len(offers) == 1
        done = await room.agent.acompress()
        assert done["status"] == "compressed", done
        await room.agent.arun_conversation("Go on.")
        last = room.model.full_requests[-1]
    before, after = next(iter(offers)), tuple(tool.name for tool in last.tools)
    assert set(after) - set(before) == {"mcp__bare__novelty"}
    assert body(text_of(last.units[-1].messages[-1].content)) == {"result": "novelty"}
