"""What plugins bring that settings name: models and search services; and what they ask of the runtime."""

import json
from collections.abc import Callable
from typing import Any

from hermes import AIAgent
from hermes.config.load import load_settings
from hermes.extensions.plugins import discover_plugins, get_plugin_commands
from hermes.extensions.plugins.plugin_set import plugins_of
from hermes.models.providers.catalogue import providers
from hermes.testing.replies import calls, says
from hermes.testing.server import ServerThread
from tests.extensions.plugins.conftest import Room
from tests.extensions.plugins.samples import write_plugin

Results = Callable[[dict[str, Any]], list[str]]
PROVIDER = """
from providers import register_provider
from providers.base import ProviderProfile

register_provider(ProviderProfile(name="houseline", aliases=("hl",), base_url="{url}", env_vars=("HOUSE_KEY",)))


def register(ctx):
    pass
"""
SEARCH = """
from agent.web_search_provider import WebSearchProvider


class Shelf(WebSearchProvider):
    name = "shelf"

    def search(self, query, limit=5):
        return {"success": True, "data": {"web": [{"title": query, "url": "https://example.org/1"}] * 9}}


def register(ctx):
    ctx.register_web_search_provider(Shelf())
    ctx.register_web_search_provider("no provider")
"""
ASKS = """
TOLD = {}


def ask(raw_args):
    answer = CTX.llm.complete([{"role": "user", "content": raw_args}], purpose="test", temperature=0.3)
    TOLD["usage"] = answer.audit["purpose"]
    return answer.text


def choose(raw_args):
    try:
        CTX.llm.complete("x", model="dear")
    except PermissionError as error:
        return str(error)


def call(raw_args):
    return CTX.dispatch_tool("todo" if raw_args == "loop" else "read_file", {"path": raw_args})


def register(ctx):
    global CTX
    CTX = ctx
    ctx.register_command("ask", ask)
    ctx.register_command("choose", choose)
    ctx.register_command("call", call)
    ctx.register_command("help", ask)
"""


def test_a_provider_of_models_answers_by_its_name(room: Room, monkeypatch: Any) -> None:
    monkeypatch.setenv("HOUSE_KEY", "k-123")
    with ServerThread([says("From the house.")]) as server:
        manifest = "name: house\nkind: model-provider\n"
        write_plugin(room.home / "plugins" / "house", PROVIDER.replace("{url}", server.base_url), manifest)
        room.config("plugins: {enabled: [house]}\nmodel: {provider: houseline, default: big}\n")
        agent = AIAgent(cwd=str(room.workspace))
        try:
            assert agent.run_conversation("Who are you?")["final_response"] == "From the house."
        finally:
            agent.close()
            providers().pop("houseline", None)
        assert server.requests[0].headers["authorization"] == "Bearer k-123"


def test_a_search_service_is_asked_by_name(room: Room, results: Results) -> None:
    write_plugin(room.home / "plugins" / "shelf", SEARCH)
    room.config("plugins: {enabled: [shelf]}\nweb: {search_backend: shelf}\n")
    answer = room.run(calls("web_search", query="tea", limit=2), says("Done."))
    told = results(answer)[0]
    assert "shelf" in told, told
    found = json.loads(told[told.index("{") : told.rindex("}") + 1])
    assert (found["provider"], len(found["data"]["web"])) == ("shelf", 2)
    (state,) = plugins_of(room.home).states(load_settings())
    assert any("it is no WebSearchProvider" in line for line in state.as_json()["warnings"])


def test_a_plugin_asks_a_model_and_calls_tools_within_its_rights(room: Room) -> None:
    write_plugin(room.home / "plugins" / "asks", ASKS)
    with ServerThread([says("42")]) as server:
        room.config(
            "plugins: {enabled: [asks]}\n"
            f"model: {{provider: custom, default: m, base_url: '{server.base_url}', api_key: none}}\n"
        )
        discover_plugins()
        commands = get_plugin_commands()
        assert sorted(commands) == ["ask", "call", "choose"]  # /help is ours
        assert commands["ask"]["handler"]("What is it?") == "42"
        body: Any = server.requests[0].json
        assert body["temperature"] == 0.3
    assert "plugins.entries.asks.llm.allow_model_override" in commands["choose"]["handler"]("")
    (room.workspace / "a.txt").write_text("words in a file\n")
    assert "words in a file" in commands["call"]["handler"]("a.txt")
    assert "must be handled by the agent loop" in commands["call"]["handler"]("loop")
