"""The weather tool, from a file in its original form, through a whole turn of an agent, and after a restart."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes import AIAgent
from hermes.runtime.setup.process import shared
from hermes.testing.memory_store import MemoryStore
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import calls, says
from hermes.tools.registration.manifest import ensure_builtins
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


async def test_a_projects_tools_stay_when_the_session_moves_about_and_keep_what_they_know(
    hermes_home: Path, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    (project / ".hermes" / "tools").mkdir(parents=True)
    (project / "sub").mkdir()
    (project / ".hermes" / "tools" / "deploy.py").write_text(
        "from tools.registry import registry, tool_result\n"
        "made = []\n"
        "schema = {'name': 'deploy', 'description': 'd', 'parameters': {'type': 'object'}}\n"
        "def deploy(args, **kw):\n"
        "    made.append(1)\n"
        "    return tool_result(times=len(made))\n"
        "registry.register('deploy', 'project', schema, deploy)\n",
        encoding="utf-8",
    )
    (hermes_home / "config.yaml").write_text(f"tools:\n  trusted_projects: ['{project}']\n", encoding="utf-8")
    store = MemoryStore()

    async def deployed(command: str, **more: Any) -> list[str]:
        model = ScriptedModel(
            calls("deploy"), calls("terminal", command=command), says("1"), calls("deploy"), says("2")
        )
        agent = AIAgent(model=model, store=store, session_id="s", enabled_toolsets=["project", "terminal"], **more)
        await agent.arun_conversation("Deploy")
        result = await agent.arun_conversation("Again")
        await agent.aclose()
        return [str(m["content"]) for m in result["messages"] if m.get("name") == "deploy"]

    assert await deployed("cd sub", cwd=str(project)) == ['{"times": 1}', '{"times": 2}']
    assert (await deployed("cd /"))[2:] == ['{"times": 3}', '{"times": 4}'], "a folder of the project belongs to it"
    await shared.close()  # the keeper of the shell
