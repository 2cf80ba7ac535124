"""Plugins in a conversation in a terminal: words that they put in, what they hear of a new session, what setup asks."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from hermes.testing.replies import calls, says
from hermes.testing.server import ServerThread
from tests.extensions.plugins.samples import write_plugin
from tests.surfaces.cli.interactive.conftest import Start
from tests.surfaces.cli.interactive.terminal import CTRL_D, ENTER, answering
from tests.surfaces.cli.test_picking import Terminal

Run = Callable[..., "subprocess.CompletedProcess[str]"]

NUDGE = """
import json
from hermes.config.paths import hermes_home
from hermes.tools.registry import tool_result


def register(ctx):
    def nudge(words):
        try:
            return f"queued: {ctx.inject_message(words, *(['system'] if 'role' in words else []))}"
        except ValueError as error:
            return f"refused: {error}"

    def remind(args, **kw):
        return tool_result(queued=ctx.inject_message("Reminder: look again."))

    def heard(**kw):
        with open(hermes_home() / "events.jsonl", "a") as file:
            file.write(json.dumps([kw["session_id"], kw["platform"], kw["reason"]]) + "\\n")

    schema = {"name": "remind", "description": "Remind.", "parameters": {"type": "object", "properties": {}}}
    ctx.register_command("nudge", nudge)
    ctx.register_tool("remind", "nudges", schema, remind)
    ctx.register_hook("on_session_reset", heard)
"""
TOOL_FILE = """
from hermes.tools.registry import registry, tool_result

SCHEMA = {"name": "weather", "description": "Weather.", "parameters": {"type": "object", "properties": {}}}
registry.register(
    name="weather", toolset="weather", schema=SCHEMA, handler=lambda args, **kw: tool_result(sun=True),
    requires_env=["WEATHER_TOKEN"],
)
"""


def install(home: Path) -> None:
    write_plugin(home / "plugins" / "nudge", NUDGE)
    (home / "config.yaml").write_text("plugins: {enabled: [nudge]}\n")


def test_what_a_plugin_puts_in_is_the_next_input_of_the_conversation(start: Start, home: Path) -> None:
    install(home)
    script = answering(
        {
            "Begin": [calls("remind"), says("I have begun.")],
            "Reminder": [says("I looked again.")],
            "[system] A role": [says("A role was heard.")],
        }
    )
    with ServerThread(script) as server, start(server) as terminal:
        terminal.wait_for("Ask something")
        terminal.type(f"/nudge{ENTER}")
        terminal.wait_for("refused: inject_message takes the words of a message")
        terminal.type(f"Begin{ENTER}")
        terminal.wait_for("I have begun.", "Reminder: look again.", "I looked again.")
        terminal.type(f"/nudge A role{ENTER}")
        terminal.wait_for("queued: True", "A role was heard.")
        terminal.type(CTRL_D)
        assert terminal.ended() == 0
    bodies = [request.json["messages"] for request in server.requests]
    assert sum(messages[-1] == {"role": "user", "content": "Reminder: look again."} for messages in bodies) == 1


def test_where_nobody_converses_a_plugin_is_told_that_nothing_was_put_in(run: Run, home: Path) -> None:
    install(home)
    with ServerThread([calls("remind"), says("Done.")]) as server:
        done = run("chat", "-q", "Begin", "--model", "scripted", "--base-url", server.base_url)
        assert done.stdout.strip() == "Done."
        assert json.loads(server.requests[-1].json["messages"][-1]["content"]) == {"queued": False}


def test_a_plugin_hears_that_the_conversation_goes_on_in_a_new_session(start: Start, run: Run, home: Path) -> None:
    install(home)
    script = answering({"Begin": [says("Begun.")], "Again": [says("Begun again.")]})
    with ServerThread(script) as server, start(server) as terminal:
        terminal.wait_for("Ask something")
        terminal.type(f"Begin{ENTER}")
        terminal.wait_for("Begun.")
        terminal.type(f"/new{ENTER}")
        terminal.type(f"Again{ENTER}")
        terminal.wait_for("Begun again.")
        terminal.type(CTRL_D)
        assert terminal.ended() == 0
    events = [json.loads(line) for line in (home / "events.jsonl").read_text().splitlines()]
    listed = json.loads(run("sessions", "list", "--json").stdout)
    (first,) = [one["id"] for one in listed if "Begin" in str(one)]
    assert events == [[first, "cli", "new_session"]]


def test_setup_asks_for_what_plugins_and_tool_files_say_they_need(
    home: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    manifest = "name: keyed\nrequires_env:\n  - {name: KEYED_TOKEN, description: a token, url: https://example.org}\n"
    write_plugin(home / "plugins" / "keyed", "def register(ctx): pass\n", manifest)
    write_plugin(home / "plugins" / "off", "def register(ctx): pass\n", "name: off\nrequires_env: [OFF_TOKEN]\n")
    (home / "tools").mkdir()
    (home / "tools" / "weather.py").write_text(TOOL_FILE)
    (home / "config.yaml").write_text("plugins: {enabled: [keyed]}\n")
    words = [sys.executable, "-m", "hermes.surfaces.cli.main", "setup", "tools"]
    terminal = Terminal(words, {**environ, "TERM": "xterm-256color"}, tmp_path)
    try:
        for known in ("BRAVE_SEARCH_API_KEY", "EXA", "FIRECRAWL", "PARALLEL", "TAVILY", "SEARXNG_URL"):
            terminal.wait_for(known)
            terminal.wait_for("leaves it out): ")
            terminal.type("\r")
        terminal.wait_for("KEYED_TOKEN: a token, https://example.org (Enter leaves it out): ")
        terminal.type("first-secret\r")
        terminal.wait_for("WEATHER_TOKEN: the tool weather (Enter leaves it out): ")
        terminal.type("second-secret\r")
        assert terminal.end() == 0
    finally:
        terminal.close()
    assert "secret" not in terminal.shown
    assert "OFF_TOKEN" not in terminal.shown
    kept = (home / ".env").read_text()
    assert "KEYED_TOKEN=first-secret" in kept
    assert "WEATHER_TOKEN=second-secret" in kept
