"""Six plugins as people have them, in the new style and with the imports of Hermes Agent, used as people use them."""

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from hermes.config.load import load_settings
from hermes.extensions.plugins import discover_plugins, get_plugin_commands, invoke_hook
from hermes.extensions.plugins.plugin_set import plugins_of
from hermes.model_tools import get_tool_definitions, handle_function_call
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import calls, says
from tests.extensions.plugins.conftest import Room
from tests.extensions.plugins.samples import write_sample

Results = Callable[[dict[str, Any]], list[str]]
pytestmark = pytest.mark.parametrize("style", ["new", "old"])


def test_a_tool_with_a_dependency_answers_in_a_turn_and_in_direct_calls(
    room: Room, results: Results, style: str
) -> None:
    write_sample(room.home, "weather", style)
    room.config("plugins: {enabled: [weather]}\n")
    answer = room.run(calls("weather", town="Berlin"), calls("weather", town="Oz"), says("Rain."))
    assert [json.loads(one) for one in results(answer)] == [
        {"town": "Berlin", "weather": "rain"},
        {"error": "no such town: Oz"},
    ]
    assert room.warnings == []
    assert json.loads(handle_function_call("weather", {"town": "Berlin"}))["weather"] == "rain"
    offered = [one["function"]["name"] for one in get_tool_definitions(["weather"], quiet_mode=True)]
    assert offered == ["weather"]
    assert not {"tools", "utils", "client", "weather"} & sys.modules.keys()
    assert "hermes_plugins.weather.client" in sys.modules


def test_a_policy_refuses_what_it_guards_on_every_route(room: Room, results: Results, style: str) -> None:
    write_sample(room.home, "policy", style)
    room.config("plugins: {enabled: [policy], entries: {policy: {settings: {word: prod}}}}\n")
    answer = room.run(calls("terminal", command="deploy prod"), calls("terminal", command="echo fine"), says("Done."))
    refused, ran = (json.loads(one) for one in results(answer))
    assert refused == {"error": "production is off limits"}
    assert ran["output"] == "fine"
    assert json.loads(handle_function_call("terminal", {"command": "deploy prod"})) == refused


def test_an_audit_log_has_every_call_in_order_also_the_refused_ones(room: Room, style: str) -> None:
    write_sample(room.home, "audit", style)
    write_sample(room.home, "policy", style)
    room.config("plugins: {enabled: [audit, policy]}\n")
    room.run(
        *(calls("terminal", command=f"echo {number}") for number in range(3)),
        calls("terminal", command="prod"),
        calls("read_file", path="gone.txt"),
        says("Done."),
    )
    rows = [json.loads(line) for line in (room.home / "audit.jsonl").read_text().splitlines()]
    assert [row["status"] for row in rows] == ["ok", "ok", "ok", "blocked", "error"]
    assert len({row["id"] for row in rows}) == 5


def test_a_memory_provider_recalls_when_the_settings_name_it(room: Room, style: str) -> None:
    write_sample(room.home, "notes", style)
    room.config("memory: {provider: notes}\n")
    model = ScriptedModel(says("Tea?"))
    room.run(model, said="What shall I drink?")
    assert "The user likes tea." in model.full_requests[0].units[-1].context
    assert room.warnings == []


def test_a_context_engine_is_chosen_by_name_and_brings_its_tool(room: Room, results: Results, style: str) -> None:
    write_sample(room.home, "engine", style)
    room.config("plugins: {enabled: [engine]}\ncontext: {engine: last-few}\n")
    answer = room.run(calls("engine_status"), says("Fine."))
    assert [json.loads(one) for one in results(answer)] == [{"engine": "last-few"}]
    agent = room.agent(says("1"), says("2"), says("3"))
    for number in range(3):
        agent.run_conversation(f"question {number}")
    done = agent.compress()
    assert (done["status"], done["after_messages"]) == ("compressed", 2)
    agent.close()


def test_a_slash_command_is_known_with_its_words(room: Room, style: str) -> None:
    write_sample(room.home, "ping", style)
    room.config("plugins: {enabled: [ping]}\n")
    discover_plugins()
    (name, facts), *more = get_plugin_commands().items()
    assert (name, facts["description"], facts["args_hint"], facts["plugin"]) == ("ping", "Answer", "WORDS", "ping")
    assert more == []
    settings = load_settings()
    assert list(plugins_of(settings.home).cli_commands(settings)) == ["ping"]


def test_hooks_are_fired_by_name(room: Room, style: str) -> None:
    write_sample(room.home, "policy", style)
    room.config("plugins: {enabled: [policy]}\n")
    found = invoke_hook("pre_tool_call", tool_name="terminal", args={"command": "prod"})
    assert found == [{"action": "block", "message": "production is off limits"}]
    assert invoke_hook("on_session_end", session_id="x") == []
