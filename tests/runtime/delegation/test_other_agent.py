"""A child that is another agent's program: the gate decides on it, and what it says is the child's report."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes import AIAgent
from hermes.config import paths
from hermes.config.write import set_key
from hermes.state.queries import SessionFilter
from hermes.testing.replies import calls, says
from hermes.testing.server import ScriptedServer, ServerThread
from tests.runtime.delegation.scripts import FamilyModel, answer, results
from tests.surfaces.cli.interactive.terminal import answering

ECHO = """
import asyncio, os
from acp import run_agent
from acp.schema import AgentCapabilities, Implementation, InitializeResponse, NewSessionResponse, PromptResponse
from acp import update_agent_message_text

class Echo:
    def on_connect(self, client):
        self._client = client

    async def initialize(self, protocol_version, **kwargs):
        return InitializeResponse(protocol_version=1, agent_capabilities=AgentCapabilities(),
                                  agent_info=Implementation(name="echo", version="1"))

    async def new_session(self, cwd, mcp_servers=None, **kwargs):
        self._cwd = cwd
        return NewSessionResponse(session_id="one")

    async def prompt(self, prompt, session_id, **kwargs):
        text = "".join(block.text for block in prompt)
        said = f"I am in {self._cwd}, started in {os.getcwd()}: " + text.strip().splitlines()[-1]
        await self._client.session_update(session_id, update_agent_message_text(said))
        return PromptResponse(stop_reason="end_turn")

asyncio.run(run_agent(Echo()))
"""
HERMES = ("-P", "-m", "hermes.surfaces.acp.main")
DONE = says("All done.")


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    turns = {"Write it.": [calls("write_file", path="note.txt", content="x"), says("I was not allowed to.")]}
    with ServerThread(answering(turns)) as running:
        yield running


@pytest.fixture
def other_home(tmp_path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of the Hermes that is the child; the program finds it in its environment."""
    home = tmp_path / "other"
    home.mkdir(mode=0o700)
    set_key(home, "model.default", "scripted")
    set_key(home, "model.base_url", server.base_url)
    monkeypatch.setenv("HERMES_HOME", str(home))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3] / "src"))
    return home


class Person:
    """Says the same to every question, and keeps them."""

    def __init__(self, says: str) -> None:
        self.says = says
        self.asked: list[tuple[str, str]] = []

    def __call__(self, command: str, description: str, **_: Any) -> str:
        self.asked.append((command, description))
        return self.says


def parent(store: Any, folder: Path, asked: dict[str, Any], person: Person | None = None, **more: Any) -> AIAgent:
    model = FamilyModel([calls("delegate_task", **asked), DONE], {"Ours.": [says("Done by our own.")]})
    toolsets = ["file", "terminal", "delegation"]
    return AIAgent(
        model=model, store=store, cwd=str(folder), enabled_toolsets=toolsets, approval_callback=person, **more
    )


async def test_another_hermes_does_a_task_beside_a_child_of_our_own(
    store: Any, tmp_path: Path, other_home: Path, server: ScriptedServer
) -> None:
    person = Person("once")
    tasks = [
        {"goal": "Theirs.", "context": "Be brief.", "acp_command": sys.executable, "acp_args": list(HERMES)},
        {"goal": "Ours."},
    ]
    agent = parent(store, tmp_path, {"tasks": tasks}, person)
    done = await agent.arun_conversation("Go.")
    theirs, ours = results(done)
    await agent.aclose()

    assert (theirs["status"], ours["status"], ours["summary"]) == ("completed", "completed", "Done by our own.")
    assert "I was asked" in theirs["summary"]
    assert "Be brief." in str(server.requests[0].json)
    (command, why) = person.asked[0]
    assert command == f"{sys.executable} -P -m hermes.surfaces.acp.main"
    assert "outside the border" in why
    assert len(person.asked) == 1
    (row,) = store.queries.sessions(SessionFilter(ids=[theirs["child_session_id"]]))
    assert (row["source"], row["end_reason"]) == ("subagent", "completed")


async def test_the_reference_sdks_agent_is_a_child_and_works_in_the_parents_folder(store: Any, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (tmp_path / "echo.py").write_text(ECHO)
    asked = {"goal": "Say it.", "acp_command": sys.executable, "acp_args": [str(tmp_path / "echo.py")]}
    agent = parent(store, folder, asked, Person("once"))
    (one,) = results(await agent.arun_conversation("Go."))
    await agent.aclose()
    assert one["status"] == "completed", one
    assert one["summary"] == f"I am in {folder}, started in {folder}: Say it."


async def test_what_the_other_agent_wants_permission_for_is_refused(
    store: Any, tmp_path: Path, other_home: Path
) -> None:
    asked = {"goal": "Write it.", "acp_command": sys.executable, "acp_args": list(HERMES)}
    agent = parent(store, tmp_path, asked, Person("once"))
    (one,) = results(await agent.arun_conversation("Go."))
    await agent.aclose()
    assert one["summary"] == "I was not allowed to."
    assert not (tmp_path / "note.txt").exists()


def _marker(tmp_path: Path) -> tuple[dict[str, Any], Path]:
    """A call whose program leaves a file where it was started."""
    mark = tmp_path / "started"
    return {"goal": "Go.", "acp_command": "/bin/sh", "acp_args": ["-c", f"touch {mark}"]}, mark


@pytest.mark.parametrize("person", [Person("deny"), None], ids=["a no", "nobody"])
@pytest.mark.parametrize("mode", ["manual", "smart", "off"])
async def test_without_a_yes_nothing_is_started(
    store: Any, tmp_path: Path, hermes_home: Path, person: Person | None, mode: str
) -> None:
    (paths.made(hermes_home) / "config.yaml").write_text(f"approvals: {{mode: {mode}}}\n")
    asked, mark = _marker(tmp_path)
    agent = parent(store, tmp_path, {"tasks": [asked, {"goal": "Ours."}]}, person)
    done = await agent.arun_conversation("Go.")
    await agent.aclose()
    assert "'/bin/sh' was not started, and none of the tasks" in answer(done)["error"]
    assert not mark.exists()
    assert store.queries.count_sessions(SessionFilter()) == 1


@pytest.mark.parametrize(("platform", "person"), [("cron", Person("always")), ("batch", None)])
async def test_an_unattended_session_starts_nothing_even_where_it_may_do_more(
    store: Any, tmp_path: Path, hermes_home: Path, platform: str, person: Person | None
) -> None:
    (paths.made(hermes_home) / "config.yaml").write_text("approvals: {cron_mode: approve}\n")
    asked, mark = _marker(tmp_path)
    agent = parent(store, tmp_path, asked, person, platform=platform)
    done = await agent.arun_conversation("Go.")
    await agent.aclose()
    assert "was not started" in answer(done)["error"]
    assert not mark.exists()


@pytest.mark.parametrize("sandbox", ["on", "off"])
async def test_a_rule_that_sends_the_program_outside_is_a_yes(
    store: Any, tmp_path: Path, other_home: Path, sandbox: str
) -> None:
    config = other_home / "config.yaml"  # of both, here
    rule = f"approvals: {{rules: [{{command: '{sys.executable} *', action: allow, outside: true}}]}}\n"
    config.write_text(f"{config.read_text()}{rule}terminal: {{sandbox: {sandbox}}}\n")
    asked = {"goal": "Theirs.", "acp_command": sys.executable, "acp_args": list(HERMES)}
    agent = parent(store, tmp_path, asked)
    (one,) = results(await agent.arun_conversation("Go."))
    await agent.aclose()
    assert "I was asked" in one["summary"]


async def test_a_rule_for_a_name_starts_no_program_of_that_name_in_the_workspace(
    store: Any, tmp_path: Path, other_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session can put one there, also into a folder of PATH."""
    config = other_home / "config.yaml"  # of both, here
    rule = "approvals: {rules: [{command: 'other-agent', action: allow, outside: true}]}\n"
    config.write_text(f"{config.read_text()}{rule}terminal: {{sandbox: off}}\n")
    program, mark = tmp_path / "bin/other-agent", tmp_path / "mark"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch {mark}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    for word, why in (("other-agent", "no such program"), ("bin/other-agent", "was not started")):
        agent = parent(store, tmp_path, {"goal": "Theirs.", "acp_command": word})
        done = await agent.arun_conversation("Go.")
        await agent.aclose()
        assert why in str(answer(done))
    assert not mark.exists()


async def test_a_program_that_cannot_be_started_fails_its_task_alone(store: Any, tmp_path: Path) -> None:
    tasks = [{"goal": "Theirs.", "acp_command": str(tmp_path / "gone")}, {"goal": "Ours."}]
    agent = parent(store, tmp_path, {"tasks": tasks}, Person("once"))
    theirs, ours = results(await agent.arun_conversation("Go."))
    await agent.aclose()
    assert (theirs["status"], ours["status"]) == ("failed", "completed")
    assert "cannot be started" in theirs["error"]
