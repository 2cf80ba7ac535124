"""What a session that exists may run: no more than the toolsets of this run and the settings allow."""

import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hermes import AIAgent
from hermes.config import paths
from hermes.ops import SessionRecord
from hermes.runtime.parts import PARTS, Part
from hermes.testing.fakes import KeepLast, MemorySink
from hermes.testing.memory_store import MemoryStore
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import calls, says
from hermes.tools.registry import Registered, ToolEntry, registry, tool_result
from hermes.types import StatusChanged, text_of

MakeAgent = Callable[..., AIAgent]
NO_ARGUMENTS = {"type": "object", "properties": {}}


@pytest.fixture
async def make_agent(tmp_path: Path) -> AsyncIterator[MakeAgent]:
    """Agents on one store and one session, allowed to do what they ask for."""
    made: list[AIAgent] = []
    store = MemoryStore()
    (tmp_path / "ws").mkdir()

    def make(*script: Any, **keywords: Any) -> AIAgent:
        model = script[0] if isinstance(script[0], ScriptedModel) else ScriptedModel(*script)
        given = {"store": store, "session_id": "s", "approval_callback": lambda _: True, **keywords}
        agent = AIAgent(model=model, cwd=str(tmp_path / "ws"), **given)
        made.append(agent)
        return agent

    yield make
    for agent in made:
        await agent.aclose()


def config(text: str) -> None:
    (paths.made(paths.hermes_home()) / "config.yaml").write_text(text)


def answers(model: ScriptedModel) -> list[str]:
    """What the model was told of its calls in the last request."""
    return [text_of(message.content) for message in model.requests[-1] if message.role == "tool"]


def told(sink: MemorySink) -> list[str]:
    return [event.message for event in sink.events if isinstance(event, StatusChanged) and event.kind == "option"]


@pytest.mark.parametrize(
    ("keywords", "settings"),
    [
        ({"enabled_toolsets": ["file"]}, ""),
        ({"enabled_toolsets": []}, ""),
        ({"disabled_toolsets": ["terminal"]}, ""),
        ({"disabled_toolsets": ["terminal_tools"]}, ""),
        ({}, "agent:\n  disabled_toolsets: [terminal]\n"),
        ({"enabled_toolsets": ["terminal"]}, "agent:\n  disabled_toolsets: [terminal]\n"),
    ],
)
async def test_a_tool_that_is_left_out_now_does_not_run_in_a_session_that_had_it(
    make_agent: MakeAgent, tmp_path: Path, keywords: dict[str, Any], settings: str
) -> None:
    before = ScriptedModel(says("ready"))
    await make_agent(before, enabled_toolsets=["file", "terminal"]).arun_conversation("Hello")
    config(settings)
    sink = MemorySink()
    model = ScriptedModel(calls("terminal", command="touch made") + calls("Terminal", command="touch made"), says("ok"))
    result = await make_agent(model, sink=sink, **keywords).arun_conversation("Go")

    assert not (tmp_path / "ws" / "made").exists()
    assert result["final_response"] == "ok"
    assert len(answers(model)) == 2
    assert all("terminal is switched off" in answer for answer in answers(model))
    assert model.full_requests[0].tools == before.full_requests[0].tools, "the prefix stays as it was"
    (sentence,) = told(sink)
    assert "terminal" in sentence.rpartition(": ")[2].split(", ")


async def test_what_is_still_allowed_runs_and_is_said_once(make_agent: MakeAgent, tmp_path: Path) -> None:
    await make_agent(says("ready"), enabled_toolsets=["file", "terminal"]).arun_conversation("Hello")
    sink = MemorySink()
    writes = calls("write_file", path="made", content="x")
    agent = make_agent(writes, says("ok"), says("again"), sink=sink, disabled_toolsets=["terminal"])
    await agent.arun_conversation("Go")
    await agent.arun_conversation("And again")
    assert (tmp_path / "ws" / "made").read_text() == "x"
    assert told(sink) == ["switched off by the toolsets of this run, and not run if the model asks: process, terminal"]


async def test_a_session_goes_on_with_its_tools_where_nothing_is_asked_for(make_agent: MakeAgent) -> None:
    await make_agent(says("ready"), enabled_toolsets=["terminal"]).arun_conversation("Hello")
    sink = MemorySink()
    model = ScriptedModel(calls("terminal", command="echo here"), says("ok"))
    await make_agent(model, sink=sink, default_toolsets=["file"]).arun_conversation("Go")
    assert json.loads(answers(model)[0])["output"] == "here"
    assert told(sink) == []


async def test_the_settings_switch_toolsets_off_for_programs_that_begin_a_session(make_agent: MakeAgent) -> None:
    config("agent:\n  disabled_toolsets: [terminal, code_execution]\n")
    model = ScriptedModel(calls("terminal", command="echo here"), says("ok"))
    await make_agent(model, enabled_toolsets=["file", "terminal"]).arun_conversation("Go")
    assert {tool.name for tool in model.full_requests[0].tools} == {"read_file", "write_file", "patch", "search_files"}
    assert "Unknown tool: terminal" in answers(model)[0]


async def test_a_script_cannot_call_what_is_left_out(make_agent: MakeAgent, tmp_path: Path) -> None:
    asked = ["file", "terminal", "code_execution"]
    await make_agent(says("ready"), enabled_toolsets=asked).arun_conversation("Hello")
    script = (
        "import hermes_tools\n"
        "print(sorted(hermes_tools.__all__))\n"
        "print(hermes_tools._ask('terminal', {'command': 'touch made'}))\n"
    )
    model = ScriptedModel(calls("execute_code", code=script), says("ok"))
    await make_agent(model, disabled_toolsets=["terminal"]).arun_conversation("Go")
    output = json.loads(answers(model)[0])["output"]
    assert "read_file" in output
    assert "'terminal'" not in output.splitlines()[0]
    assert "tool 'terminal' cannot be called from a script" in output
    assert not (tmp_path / "ws" / "made").exists()


@pytest.fixture
def games() -> Iterator[list[str]]:
    """Two toolsets of one tool each, and what ran."""
    ran: list[str] = []

    def register(name: str, toolset: str) -> None:
        def handler(_args: dict[str, Any], **_: Any) -> str:
            ran.append(name)
            return tool_result(ok=True)

        schema = {"name": name, "description": f"Play {name}.", "parameters": NO_ARGUMENTS}
        registry.register(name=name, toolset=toolset, schema=schema, handler=handler)

    register("chess", "boards")
    register("poker", "cards")
    yield ran
    registry.deregister("chess")
    registry.deregister("poker")


async def test_a_tool_that_is_found_by_search_is_neither_found_nor_run(make_agent: MakeAgent, games: list[str]) -> None:
    config("tools:\n  tool_search:\n    enabled: on\n")
    await make_agent(says("ready"), enabled_toolsets=["boards", "cards"]).arun_conversation("Hello")
    model = ScriptedModel(
        calls("tool_search", query="play")
        + calls("tool_describe", name="poker")
        + calls("tool_call", name="poker")
        + calls("poker")
        + calls("tool_call", name="chess"),
        says("ok"),
    )
    await make_agent(model, enabled_toolsets=["boards"]).arun_conversation("Go")
    found, described, called, direct, allowed = answers(model)
    assert [one["name"] for one in json.loads(found)["tools"]] == ["chess"]
    assert "no tool 'poker'" in described
    assert "poker is switched off" in called
    assert "poker is switched off" in direct
    assert json.loads(allowed) == {"ok": True}
    assert games == ["chess"]


async def test_tools_of_the_users_own_files_are_held_as_well(make_agent: MakeAgent, tmp_path: Path) -> None:
    folder = paths.made(paths.hermes_home()) / "tools"
    folder.mkdir()
    for name in ("flute", "drum"):
        (folder / f"{name}.py").write_text(
            "from hermes.tools.registry import registry, tool_result\n\n\n"
            f"def {name}(args, **kw):\n"
            f"    open({str(tmp_path / name)!r}, 'w').close()\n"
            "    return tool_result(ok=True)\n\n\n"
            f"registry.register(name='{name}', toolset='{name}s', handler={name},\n"
            f"    schema={{'name': '{name}', 'description': '', 'parameters': {NO_ARGUMENTS!r}}})\n"
        )
    try:
        await make_agent(says("ready"), enabled_toolsets=["flutes", "drums"]).arun_conversation("Hello")
        model = ScriptedModel(calls("flute") + calls("drum"), says("ok"))
        await make_agent(model, disabled_toolsets=["drums"]).arun_conversation("Go")
    finally:
        for name in ("flute", "drum"):
            registry.deregister(name)
    assert (tmp_path / "flute").exists()
    assert not (tmp_path / "drum").exists()
    assert "drum is switched off" in answers(model)[1]


async def test_what_a_session_keeps_of_its_prompt_is_said_where_it_is_asked_for_now(make_agent: MakeAgent) -> None:
    begun = make_agent(says("ready"), pass_session_id=True)
    await begun.arun_conversation("Hello", system_message="Be brief.")
    sink = MemorySink()
    agent = make_agent(says("a"), says("b"), sink=sink, pass_session_id=True)
    await agent.arun_conversation("Same", system_message="Be brief.")
    assert told(sink) == []
    await agent.arun_conversation("Other", system_message="Be wordy.")
    other = make_agent(says("c"), sink=sink, skip_context_files=True)
    await other.arun_conversation("Rules")
    kept = "this session keeps the system prompt it began with, so {} changes nothing in it"
    assert told(sink) == [kept.format("system_message"), kept.format("skip_context_files")]


class Client(Part):
    """A part with a tool of a server."""

    async def tools(self, session: SessionRecord | None) -> Sequence[Registered]:
        schema = {"name": "mcp_weather", "description": "Weather.", "parameters": NO_ARGUMENTS}
        return [Registered(ToolEntry("mcp_weather", "mcp-server", schema, lambda _, **__: tool_result(sky="blue")))]


@pytest.fixture
def client() -> Iterator[None]:
    PARTS.add("servers", Client)
    yield
    PARTS.remove("servers")


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize(
    ("keywords", "may_run"),
    [
        ({}, True),
        ({"enabled_toolsets": ["mcp-server"]}, True),
        ({"enabled_toolsets": ["hermes-cli"]}, True),
        ({"default_toolsets": ["hermes-cli"]}, True),
        ({"enabled_toolsets": ["file"]}, False),
        ({"enabled_toolsets": []}, False),
        ({"disabled_toolsets": ["mcp-server"]}, False),
    ],
)
async def test_a_restriction_holds_for_the_tools_of_a_part(
    make_agent: MakeAgent, keywords: dict[str, Any], may_run: bool
) -> None:
    fresh = ScriptedModel(calls("mcp_weather"), says("ok"))
    await make_agent(fresh, session_id="new", **keywords).arun_conversation("Go")
    assert ("mcp_weather" in [tool.name for tool in fresh.full_requests[0].tools]) is may_run
    assert ("blue" in answers(fresh)[0]) is may_run

    await make_agent(says("ready"), session_id="old").arun_conversation("Hello")
    later = ScriptedModel(calls("mcp_weather"), says("ok"))
    await make_agent(later, session_id="old", **keywords).arun_conversation("Go")
    assert ("blue" in answers(later)[0]) is may_run


class Recalling(KeepLast):
    """An engine with a tool."""

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return [{"name": "recall", "description": "Recall.", "parameters": NO_ARGUMENTS}]

    def handle_tool_call(self, _name: str, _args: dict[str, Any], **_: Any) -> str:
        return tool_result(recalled="all")


@pytest.mark.parametrize(
    ("keywords", "may_run"),
    [({"enabled_toolsets": ["file"]}, True), ({"disabled_toolsets": ["context_engine"]}, False)],
)
async def test_the_tools_of_an_engine_go_only_when_they_are_switched_off_by_name(
    make_agent: MakeAgent, keywords: dict[str, Any], may_run: bool
) -> None:
    model = ScriptedModel(calls("recall"), says("ok"))
    await make_agent(model, context_engine=Recalling(), **keywords).arun_conversation("Go")
    assert ("recalled" in answers(model)[0]) is may_run
