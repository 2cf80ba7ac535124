"""A client of tool servers as one part: tools come and go between turns, and the list of a session stays as it is."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from hermes import AIAgent
from hermes.ops import SessionRecord
from hermes.runtime.parts import PARTS, Part
from hermes.testing.memory_store import MemoryStore
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import calls, says
from hermes.tools.registry import Registered, ToolEntry, tool_result
from hermes.types import text_of


class Server:
    """What a real one would be at the other end of a pipe: it says what it offers, and when that has changed."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.version = 0
        self.listed = 0

    def offer(self, *names: str) -> None:
        self.names, self.version = list(names), self.version + 1


class Client(Part):
    """Offers what the server has."""

    server: ClassVar[Server]

    @property
    def generation(self) -> int:  # type: ignore[override]  # a number of its own for each server
        return self.server.version

    async def tools(self, session: SessionRecord | None) -> Sequence[Registered]:
        self.server.listed += 1
        return [self._tool(name) for name in self.server.names]

    def _tool(self, name: str) -> Registered:
        def call(_args: dict[str, Any], **_: Any) -> str:
            return tool_result(from_server=name)

        schema = {"name": f"mcp_{name}", "description": f"{name} of the server."}
        return Registered(ToolEntry(f"mcp_{name}", "mcp-server", schema, call))


@pytest.fixture
def server() -> Iterator[Server]:
    Client.server = Server()
    PARTS.add("servers", Client)
    yield Client.server
    PARTS.remove("servers")


async def test_tools_come_and_go_between_turns_and_the_prefix_of_a_session_stays(
    tmp_path: Path, server: Server
) -> None:
    server.offer("weather")
    call = calls("mcp_weather")
    model = ScriptedModel(call, says("Sunny."), call, says("Gone."), call, says("Back."), says("New."))
    store = MemoryStore()
    agent = AIAgent(model=model, store=store, cwd=str(tmp_path), session_id="one")

    async def answer() -> str:
        await agent.arun_conversation("What is the weather?")
        return text_of(model.requests[-1][-1].content)

    assert '{"from_server": "weather"}' in await answer()
    server.offer("tides")
    assert "was offered when this session began but is not installed now" in await answer()
    server.offer("weather", "tides")
    assert '{"from_server": "weather"}' in await answer()
    assert server.listed == 3, "asked again only when something has changed"
    offers = {tuple(tool.name for tool in request.tools) for request in model.full_requests}
    assert len(offers) == 1
    await agent.aclose()

    fresh = AIAgent(model=model, store=store, cwd=str(tmp_path), session_id="two")
    await fresh.arun_conversation("Hi")
    await fresh.aclose()
    named = [tool.name for tool in model.full_requests[-1].tools if tool.name.startswith("mcp_")]
    assert named == ["mcp_tides", "mcp_weather"]


async def test_a_view_is_made_once_while_nothing_changes(tmp_path: Path, server: Server) -> None:
    server.offer("weather")
    agent = AIAgent(model=ScriptedModel(says("a"), says("b"), says("c")), store=MemoryStore(), cwd=str(tmp_path))
    await agent.arun_conversation("1")
    made = await agent._assembled()
    record = await made.store.load(agent.session_id)
    assert await made.tools.view(record) is await made.tools.view(record)
    server.offer("weather")
    await agent.arun_conversation("2")
    await agent.aclose()
    assert server.listed == 2
