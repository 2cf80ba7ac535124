"""The weather tool, from a file in its original form, through a whole turn of an agent, and after a restart."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes import AIAgent
from hermes.testing.memory_store import MemoryStore
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import calls, says
from hermes.tools.manifest import ensure_builtins
from hermes.tools.registry import registry
from tests.compat.test_weather_tool import WEATHER


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    ensure_builtins()
    yield
    _forget()


def _forget() -> None:
    """As a new process would find it."""
    registry.deregister("weather")
    registry.files.clear()


async def test_the_model_uses_it_and_a_restarted_session_still_does(
    hermes_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEATHER_API_KEY", "k")
    (hermes_home / "tools").mkdir()
    (hermes_home / "tools" / "weather_tool.py").write_text(WEATHER, encoding="utf-8")
    store = MemoryStore()
    for city in ("Kyiv", "Oslo"):
        model = ScriptedModel(calls("weather", location=city), says(f"21 degrees in {city}."))
        agent = AIAgent(model=model, store=store, cwd=str(tmp_path), session_id="s", enabled_toolsets=["hermes-cli"])
        result = await agent.arun_conversation(f"Weather in {city}?")
        assert result["final_response"] == f"21 degrees in {city}."
        answers = [json.loads(str(m["content"])) for m in result["messages"] if m["role"] == "tool"]
        assert answers[-1]["location"] == city, answers
        await agent.aclose()
        _forget()


async def test_a_handler_is_told_what_the_user_asked_for(hermes_home: Path, tmp_path: Path) -> None:
    (hermes_home / "tools").mkdir()
    (hermes_home / "tools" / "weather_tool.py").write_text(
        "from tools.registry import registry, tool_result\n"
        "schema = {'name': 'weather', 'description': 'd', 'parameters': {'type': 'object'}}\n"
        "registry.register('weather', 'weather', schema, lambda args, **kw: tool_result(asked=kw['user_task']))\n",
        encoding="utf-8",
    )
    model = ScriptedModel(calls("weather"), says("Sunny."))
    agent = AIAgent(model=model, store=MemoryStore(), cwd=str(tmp_path), enabled_toolsets=["weather"])
    result = await agent.arun_conversation("Is it warm in Rome?")
    assert [m["content"] for m in result["messages"] if m["role"] == "tool"] == ['{"asked": "Is it warm in Rome?"}']
    await agent.aclose()
