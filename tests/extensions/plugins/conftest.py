"""A home of one's own for each test, and agents in it; what plugins brought to the process is gone afterwards."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes import AIAgent
from hermes.context.memory.provider import PROVIDERS
from hermes.model_tools import close_task
from hermes.testing.fakes import MemorySink
from hermes.testing.memory_store import MemoryStore
from hermes.testing.model import ScriptedModel
from hermes.tools.calling.outside_agent import outside
from hermes.tools.registry import registry
from hermes.tools.web.providers import SEARCHES
from hermes.types import StatusChanged


class Room:
    """A home, and what an agent in it said and did."""

    def __init__(self, home: Path, workspace: Path) -> None:
        self.home = home
        self.workspace = workspace
        self.sink = MemorySink()
        self.agents: list[AIAgent] = []

    def config(self, text: str) -> None:
        (self.home / "config.yaml").write_text(text)

    def agent(self, *script: Any, **keywords: Any) -> AIAgent:
        given = {"store": MemoryStore(), "cwd": str(self.workspace), "sink": self.sink, **keywords}
        made = AIAgent(model=script[0] if isinstance(script[0], ScriptedModel) else ScriptedModel(*script), **given)
        self.agents.append(made)
        return made

    def run(self, *script: Any, said: str = "Go.", **keywords: Any) -> dict[str, Any]:
        """One turn, and the agent is closed: observers have heard everything by then."""
        agent = self.agent(*script, **keywords)
        try:
            return agent.run_conversation(said)
        finally:
            agent.close()

    @property
    def warnings(self) -> list[str]:
        events = [one for one in self.sink.events if isinstance(one, StatusChanged)]
        return [one.message for one in events if one.kind in ("warning", "option")]


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Room]:
    home, workspace = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    workspace.mkdir()
    monkeypatch.setenv("HERMES_HOME", str(home))
    monkeypatch.chdir(workspace)
    known = set(PROVIDERS.names())
    yield Room(home, workspace)
    close_task("default")  # what direct calls have started
    for name, tool in registry.snapshot().items():
        if tool.origin == "plugin":
            registry.deregister(name)
    for name in set(PROVIDERS.names()) - known:
        PROVIDERS.remove(name)
    SEARCHES.clear()
    for owner in outside.hooks_of[1:]:
        outside.hooks.remove(owner)
    outside.hooks_of = ()


@pytest.fixture
def results() -> Callable[[dict[str, Any]], list[str]]:
    return lambda answer: [one["content"] for one in answer["messages"] if one["role"] == "tool"]
