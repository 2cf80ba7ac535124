"""An agent with MCP servers, for tests: what the model asks is scripted, the servers are real."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from hermes import AIAgent
from hermes.config.load import load_settings
from hermes.runtime.setup.process import shared
from hermes.testing.memory_store import MemoryStore
from hermes.testing.model import ScriptedModel
from hermes.tools.mcp.client import McpClient
from hermes.types import Event, text_of

BARE = Path(__file__).with_name("bare_server.py")


def bare(*modes: str, log: Path | None = None, **entry: Any) -> dict[str, Any]:
    """The entry of the server that was written without the SDK."""
    env = {**({"BARE_LOG": str(log)} if log else {}), **entry.pop("env", {})}
    return {"command": sys.executable, "args": [str(BARE), *modes], "env": env, **entry}


def write_config(home: Path, servers: dict[str, Any], **more: Any) -> None:
    home.mkdir(parents=True, exist_ok=True)
    quiet = {"auxiliary": {"background_review": {"enabled": False}}}  # it would take the next line of the script
    (home / "config.yaml").write_text(yaml.safe_dump({"mcp_servers": servers, **quiet, **more}))


class Heard:
    """A sink that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.on_event: Callable[[Event], None] = lambda _: None

    def emit(self, event: Event) -> None:
        self.events.append(event)
        self.on_event(event)

    def told(self) -> str:
        return "\n".join(str(getattr(event, "message", "")) for event in self.events)


class McpRoom:
    """One agent, its model, and what is behind it."""

    def __init__(self, agent: AIAgent, model: ScriptedModel, heard: Heard, work: Path) -> None:
        self.agent, self.model, self.heard, self.work = agent, model, heard, work

    async def ask(self, words: str = "Go on.") -> list[str]:
        """A turn; the results that its calls had, in order."""
        before = sum(one.role == "tool" for one in self.model.requests[-1]) if self.model.requests else 0
        await self.agent.arun_conversation(words)
        results = [text_of(one.content) for one in self.model.requests[-1] if one.role == "tool"]
        return results[before:]

    async def client(self) -> McpClient:
        made = await self.agent._assembled()
        found = made.services.memo["mcp"].client()
        assert isinstance(found, McpClient)
        return found

    async def until(self, name: str, state: str, limit_s: float = 30) -> None:
        """Wait until a server is so; an event of its owner each, bounded."""
        server = (await self.client()).servers[name]
        await eventually(lambda: server.state == state, limit_s)


@asynccontextmanager
async def mcp_room(
    home: Path, servers: dict[str, Any], *replies: Any, settings: dict[str, Any] | None = None, **keywords: Any
) -> AsyncIterator[McpRoom]:
    """An agent in a folder of its own, whose servers were seen before unless `seen=False`."""
    work = home.parent / "work"
    work.mkdir(exist_ok=True)
    is_seen = keywords.pop("seen", True)
    # A review of long sessions would ask the scripted model.
    write_config(home, servers, **{"auxiliary": {"background_review": {"enabled": False}}, **(settings or {})})
    model = keywords.pop("model", None) or ScriptedModel(*replies)
    heard = Heard()
    keywords.setdefault("store", MemoryStore())
    agent = AIAgent(model=model, cwd=str(work), sink=heard, **keywords)
    room = McpRoom(agent, model, heard, work)
    try:
        if is_seen:
            await (await room.client()).reach_all()
        yield room
    finally:
        await agent.aclose()
        await shared.close()


async def eventually(is_so: Callable[[], bool], limit_s: float = 20) -> None:
    """Wait for what happens in another process, bounded."""
    async with asyncio.timeout(limit_s):
        while not is_so():  # noqa: ASYNC110 - nobody in this process could set an event
            await asyncio.sleep(0.01)


def body(result: str) -> dict[str, Any]:
    """The JSON object inside a result, fenced or not."""
    start, end = result.index("{"), result.rindex("}") + 1
    found: dict[str, Any] = json.loads(result[start:end])
    return found


def settings_of(home: Path) -> Any:
    return load_settings(home)
