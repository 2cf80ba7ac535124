"""Another agent as the model: our own command, as it speaks the protocol, behind a session of ours."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes import AIAgent
from hermes.config.load import bound_settings, load_settings
from hermes.config.write import set_key
from hermes.errors import UserError
from hermes.testing.replies import calls, says
from hermes.testing.server import ScriptedServer, ServerThread
from tests.surfaces.cli.interactive.terminal import answering

PROGRAM, ARGS = sys.executable, ["-P", "-m", "hermes.surfaces.acp.main"]


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    turns = {"Write": [calls("write_file", path="note.txt", content="x"), says("I was not allowed to.")]}
    with ServerThread(answering(turns)) as running:
        yield running


@pytest.fixture
def other_home(tmp_path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of the agent behind; the program finds it in its environment."""
    home = tmp_path / "other"
    home.mkdir(mode=0o700)
    set_key(home, "model.default", "scripted")
    set_key(home, "model.base_url", server.base_url)
    monkeypatch.setenv("HERMES_HOME", str(home))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2] / "src"))
    monkeypatch.chdir(tmp_path)
    return home


def test_a_conversation_goes_on_in_one_session_of_the_other_agent(
    tmp_path: Path, other_home: Path, server: ScriptedServer
) -> None:
    settings = load_settings(tmp_path / "home", environ={**os.environ, "HERMES_HOME": str(tmp_path / "home")})
    with bound_settings(settings):
        agent = AIAgent(acp_command=PROGRAM, acp_args=ARGS, enabled_toolsets=[])
        try:
            assert "I was asked" in agent.chat("Hello")
            assert agent.chat("Once more").startswith("I was asked: Once more")
        finally:
            agent.close()

    asked = [request for request in server.requests if "Give a title" not in str(request.json)]
    assert len(asked) == 2
    assert "Once more" not in str(asked[0].json)
    assert "Hello" in str(asked[1].json)  # the other agent has kept what was said


def test_the_other_agent_is_granted_nothing(tmp_path: Path, other_home: Path) -> None:
    settings = load_settings(tmp_path / "home", environ={**os.environ, "HERMES_HOME": str(tmp_path / "home")})
    with bound_settings(settings):
        agent = AIAgent(command=PROGRAM, args=ARGS, enabled_toolsets=[])
        try:
            assert agent.chat("Write") == "I was not allowed to."
        finally:
            agent.close()
    assert not (tmp_path / "note.txt").exists()


def test_a_program_that_is_not_there_is_said_in_one_sentence(tmp_path: Path) -> None:
    settings = load_settings(tmp_path / "home", environ={"HERMES_HOME": str(tmp_path / "home")})
    with bound_settings(settings):
        agent = AIAgent(acp_command=str(tmp_path / "gone"), enabled_toolsets=[])
        try:
            result = agent.run_conversation("Hello")
        finally:
            agent.close()
    assert result["failed"]
    assert "cannot be started" in str(result["error"])


def test_arguments_without_a_program_are_refused(tmp_path: Path) -> None:
    settings = load_settings(tmp_path / "home", environ={"HERMES_HOME": str(tmp_path / "home")})
    with bound_settings(settings), pytest.raises(UserError, match="acp_command"):
        AIAgent(acp_args=["x"]).chat("Hello")


HOSTILE = """
import json, sys
out = sys.stdout.buffer
for line in sys.stdin:
    asked = json.loads(line)
    new = asked["method"] == "session/new"
    if asked["method"] == "session/prompt":
        out.write(b'{"method": "session/update", "params": {"update": "\\xff\\xfe"}}\\n')
        text = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Hello."}}
        out.write(json.dumps({"method": "session/update", "params": {"update": text}}).encode() + b"\\n")
    result = json.loads(sys.argv[1]) if new else {"usage": {"inputTokens": 2**64 - 1}}
    out.write(json.dumps({"id": asked["id"], "result": result}).encode() + b"\\n")
    out.flush()
"""


@pytest.mark.parametrize("begun", ['{"sessionId": "s"}', "{}", "[1]", "null"])
def test_what_another_agent_may_say_ends_no_turn_with_a_crash(tmp_path: Path, begun: str) -> None:
    (tmp_path / "hostile.py").write_text(HOSTILE)
    settings = load_settings(tmp_path / "home", environ={**os.environ, "HERMES_HOME": str(tmp_path / "home")})
    with bound_settings(settings):
        agent = AIAgent(acp_command=PROGRAM, acp_args=[str(tmp_path / "hostile.py"), begun], enabled_toolsets=[])
        try:
            done = agent.run_conversation("Hello")
        finally:
            agent.close()
    if "sessionId" in begun:
        assert done["final_response"] == "Hello."
    else:
        assert "does not name the session" in str(done["error"])
