"""Children of an agent use its servers: none is started again, and what is asked for a child is asked as its own."""

import json
from pathlib import Path

from hermes.testing.replies import calls, says
from tests.runtime.delegation.scripts import FamilyModel
from tests.tools.mcp.mcp_room import bare, body, mcp_room


async def test_children_use_the_open_servers_of_their_parent(hermes_home: Path, tmp_path: Path) -> None:
    log = tmp_path / "work" / "log"
    work = [calls("mcp__bare__pid"), says("Asked.")]
    model = FamilyModel(
        [
            calls("delegate_task", tasks=[{"goal": "One."}, {"goal": "Two.", "toolsets": ["file"]}]),
            calls("mcp__bare__pid"),
            says("Done."),
        ],
        {"One.": work, "Two.": work},
    )
    async with mcp_room(hermes_home, {"bare": bare(log=log)}, model=model) as room:
        told = await room.agent.arun_conversation("Ask twice.")
        said = log.read_text().splitlines()
        after = [one["content"] for one in told["messages"] if one["role"] == "tool"]
        born = {body(after[1])["result"]}
        for goal in ("One.", "Two."):
            seen = next(one for one in model.parts[goal].requests[-1] if one.role == "tool")
            born.add(body(str(seen.content))["result"])
        assert (await room.client()).servers["bare"].is_ready, "the end of a child is not the end of the servers"
    assert len(born) == 1, "the same process has answered all of them"
    assert sum("started" in json.loads(line) for line in said) == 1
