"""Another agent as the model: our own command, as it speaks the protocol, behind a session of ours."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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

def put(frame):
    out.write(json.dumps(frame).encode() + b"\\n")
    out.flush()

def say(text, kind="agent_message_chunk"):
    put({"method": "session/update", "params": {"update": {"sessionUpdate": kind, "content": {"text": text}}}})

begun = json.loads(sys.argv[1])
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "session/prompt":
        BEHAVE
    usage = {"usage": {"inputTokens": 2**64 - 1}}
    put({"id": asked["id"], "result": begun if asked["method"] == "session/new" else usage})
"""
BAD_BYTES = 'out.write(b\'{"method": "session/update", "params": {"update": "\\xff\\xfe"}}\\n\'); say(\'Hello.\')'
ASKS_DEAF = """
        while True:
            put({"id": "x" * 200, "method": "session/request_permission", "params": {}})
"""
ASKS_THEN_READS = """
        for number in range(2000):
            put({"id": number, "method": "session/request_permission", "params": {}})
        for number in range(2000):
            assert json.loads(sys.stdin.readline())["id"] == number
        say("All were answered.")
"""
LONG_LINE = """
        while True:
            out.write(b"x" * 65536)
"""
ENDLESS = """
        while True:
            say("word " * 1000)
"""
ENDLESS_THOUGHT = """
        while True:
            say("word " * 1000, "agent_thought_chunk")
"""
SILENT = """
        import signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            signal.pause()
"""
LEAVES = """
        sys.stderr.write("no more of this\\n")
        sys.exit(3)
"""
CLOSES_ITS_EARS = """
        import os
        os.close(0)
        say("Hello.")
        put({"id": asked["id"], "result": {}})
        import time
        time.sleep(600)
"""


def _hostile(tmp_path: Path, behaviour: str, begun: str = '{"sessionId": "s"}', config: str = "") -> dict[str, Any]:
    """What a turn comes to with such a program behind it, and what is `left` of the program then."""
    script, pids = tmp_path / "hostile.py", tmp_path / "pids"
    note = f"import os; open({str(pids)!r}, 'a').write(f'{{os.getpid()}}\\n')\n"
    script.write_text(note + HOSTILE.replace("BEHAVE", behaviour.strip()))
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.yaml").write_text(config)
    settings = load_settings(home, environ={**os.environ, "HERMES_HOME": str(home)})
    with bound_settings(settings):
        agent = AIAgent(acp_command=PROGRAM, acp_args=[str(script), begun], enabled_toolsets=[])
        try:
            done = agent.run_conversation("Hello" * 100_000)  # more than a pipe holds
            done["left"] = [pid for pid in pids.read_text().split() if Path(f"/proc/{pid}").exists()]
        finally:
            agent.close()
    return done


@pytest.mark.parametrize("begun", ['{"sessionId": "s"}', "{}", "[1]", "null"])
def test_what_another_agent_may_say_ends_no_turn_with_a_crash(tmp_path: Path, begun: str) -> None:
    done = _hostile(tmp_path, BAD_BYTES, begun)
    if "sessionId" in begun:
        assert done["final_response"] == "Hello."
    else:
        assert "does not name the session" in str(done["error"])


@pytest.mark.parametrize(
    ("behaviour", "config", "says"),
    [
        (ASKS_DEAF, "", "asks and does not read the answers; it was stopped"),
        (LONG_LINE, "agent: {answer: {max_event_bytes: 1000000}}", "a line of more than 1,000,000 bytes"),
        (ENDLESS, "agent: {answer: {max_chars: 1000000}}", "agent.answer.max_chars"),
        (ENDLESS_THOUGHT, "agent: {answer: {max_thinking_chars: 1000000}}", "agent.answer.max_thinking_chars"),
        (SILENT, "agent: {local_stream_stale_timeout: 1}", "has said nothing for 1 s; it was stopped"),
        (ENDLESS.replace("say(", "sys.stdin; print("), "HERMES_API_TIMEOUT", "was not done within 2 s"),
        (LEAVES, "agent: {api_max_retries: 1}", "has ended: no more of this"),
    ],
    ids=["deaf", "long line", "endless", "endless thought", "silent", "noise", "leaves"],
)
def test_a_program_that_passes_a_bound_is_stopped_with_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behaviour: str, config: str, says: str
) -> None:
    if config == "HERMES_API_TIMEOUT":
        monkeypatch.setenv(config, "2")
        config = "agent: {api_max_retries: 1}"
    done = _hostile(tmp_path, behaviour, config=config)
    assert done["failed"]
    assert says in str(done["error"])
    assert done["left"] == []


def test_a_program_that_asks_much_before_it_reads_is_answered(tmp_path: Path) -> None:
    assert _hostile(tmp_path, ASKS_THEN_READS)["final_response"] == "All were answered."


def test_a_program_that_reads_no_more_may_still_have_answered(tmp_path: Path) -> None:
    assert _hostile(tmp_path, CLOSES_ITS_EARS)["final_response"] == "Hello."
