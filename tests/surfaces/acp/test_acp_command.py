"""The real command, with the reference SDK as its client: stdout is the protocol's, and stdin's end is the end."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from acp import PROTOCOL_VERSION, spawn_agent_process, text_block
from acp.schema import AllowedOutcome, RequestPermissionResponse

from hermes.config.write import set_key
from hermes.testing.replies import calls, says
from hermes.testing.server import ServerThread
from tests.surfaces.cli.interactive.terminal import answering

WORDS = (sys.executable, "-P", "-m", "hermes.surfaces.acp.main")
NOISE = """
import os, subprocess, sys, warnings

from tools.registry import registry

print("printed while it is loaded")
os.write(1, b"written past everything\\n")


def noise(args, **kw):
    print("printed by a call")
    sys.__stdout__.write("to the first stdout\\n")
    sys.__stdout__.flush()
    os.write(1, b"raw bytes\\n")
    os.system("echo printed by a child")
    warnings.warn("a warning of a library")
    return "quiet"


registry.register(
    name="noise",
    toolset="noise",
    schema={"name": "noise", "description": "Make noise.", "parameters": {"type": "object", "properties": {}}},
    handler=noise,
)
"""


class Quiet:
    """An SDK client that allows everything and keeps what it is told."""

    def __init__(self) -> None:
        self.updates: list[Any] = []

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        self.updates.append(update)

    async def request_permission(self, options: Any, session_id: str, tool_call: Any, **kwargs: Any) -> Any:
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id="allow_once"))


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    turns = {"Noise": [calls("noise"), says("Done.")], "Sleep": [calls("terminal", command="sleep 600"), says("No.")]}
    home = tmp_path / "home"
    (home / "tools").mkdir(parents=True, mode=0o700)
    (home / "tools" / "noise.py").write_text(NOISE)
    with ServerThread(answering(turns)) as server:
        set_key(home, "model.default", "scripted")
        set_key(home, "model.base_url", server.base_url)
        set_key(home, "toolsets", "[hermes-acp, noise]")
        keep = ("PATH", "HERMES_CHECK_RUN", "PYTHONPATH", "LANG")
        yield {name: os.environ[name] for name in keep if name in os.environ} | {
            "HERMES_HOME": str(home),
            "HOME": str(tmp_path),
            "PYTHONPATH": str(Path(__file__).parents[3] / "src"),
        }


async def test_the_sdk_talks_to_the_real_command(environ: dict[str, str], tmp_path: Path) -> None:
    client = Quiet()
    async with (
        asyncio.timeout(90),
        spawn_agent_process(cast("Any", client), *WORDS, env=environ, cwd=tmp_path) as (agent, process),
    ):
        told = await agent.initialize(protocol_version=PROTOCOL_VERSION)
        assert told.agent_info is not None
        assert told.agent_info.name == "hermes-agent"
        session = await agent.new_session(cwd=str(tmp_path), mcp_servers=[])
        done = await agent.prompt(session_id=session.session_id, prompt=[text_block("Noise, please")])
        assert done.stop_reason == "end_turn"
        assert process.returncode is None

    kinds = [type(update).__name__ for update in client.updates]
    assert "ToolCallStart" in kinds
    assert "AgentMessageChunk" in kinds


async def _started(environ: dict[str, str], cwd: Path) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(*WORDS, env=environ, cwd=cwd, stdin=pipe, stdout=pipe, stderr=pipe)


def _frame(number: int, method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


async def test_no_byte_on_stdout_that_is_not_a_frame(environ: dict[str, str], tmp_path: Path) -> None:
    process = await _started(environ, tmp_path)
    assert process.stdin is not None
    assert process.stdout is not None
    frames: list[dict[str, Any]] = []

    async def reply(number: int) -> dict[str, Any]:
        assert process.stdout is not None
        while True:
            frame = json.loads(await process.stdout.readline())  # a line that is no frame fails here
            assert frame["jsonrpc"] == "2.0"
            frames.append(frame)
            if frame.get("id") == number:
                return dict(frame)

    async with asyncio.timeout(90):
        process.stdin.write(b'{"jsonrpc":"2.0","id":9,"method":"\xff\xfe"}\n')  # no text, inside of what could be JSON
        process.stdin.write(_frame(1, "initialize", protocolVersion=1))
        process.stdin.write(_frame(2, "session/new", cwd=str(tmp_path), mcpServers=[]))
        session = (await reply(2))["result"]["sessionId"]
        process.stdin.write(_frame(3, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Noise"}]))
        assert (await reply(3))["result"]["stopReason"] == "end_turn"
        process.stdin.close()
        rest, said = await process.stdout.read(), await process.stderr.read() if process.stderr else b""
        await process.wait()

    assert rest == b""
    for words in (
        b"while it is loaded",
        b"past everything",
        b"first stdout",
        b"raw bytes",
        b"by a child",
    ):
        assert words in said
    assert process.returncode == 0


async def test_the_end_of_stdin_ends_a_running_turn_and_its_children(environ: dict[str, str], tmp_path: Path) -> None:
    process = await _started(environ, tmp_path)
    assert process.stdin is not None
    assert process.stdout is not None
    async with asyncio.timeout(90):
        process.stdin.write(_frame(1, "session/new", cwd=str(tmp_path), mcpServers=[]))
        while b'"id":1' not in (line := await process.stdout.readline()):
            assert line
        session = json.loads(line)["result"]["sessionId"]
        process.stdin.write(_frame(2, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Sleep"}]))
        while b'"tool_call"' not in (line := await process.stdout.readline()):
            assert line
        process.stdin.close()
        await process.stdout.read()
        assert await process.wait() == 0


async def test_an_editor_that_hears_no_more_is_gone_although_it_could_still_speak(
    environ: dict[str, str], tmp_path: Path
) -> None:
    ears, mouth = os.pipe()
    process = await asyncio.create_subprocess_exec(
        *WORDS,
        env=environ,
        cwd=tmp_path,
        stdin=asyncio.subprocess.PIPE,
        stdout=mouth,
        stderr=asyncio.subprocess.DEVNULL,
    )
    os.close(mouth)
    assert process.stdin is not None
    with os.fdopen(ears, "rb", buffering=0) as heard:
        async with asyncio.timeout(90):
            process.stdin.write(_frame(1, "initialize", protocolVersion=1))
            assert await asyncio.to_thread(heard.readline)
    async with asyncio.timeout(90):
        process.stdin.write(_frame(2, "session/new", cwd=str(tmp_path), mcpServers=[]))
        assert await process.wait() == 0
    process.stdin.close()


async def test_check_and_version_say_one_line(environ: dict[str, str], tmp_path: Path) -> None:
    for words, begins in ((["--check"], b"OK: hermes-acp"), (["--version"], b"hermes-acp ")):
        process = await asyncio.create_subprocess_exec(
            *WORDS, *words, env=environ, cwd=tmp_path, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
        assert process.returncode == 0
        assert out.startswith(begins)
        assert out.count(b"\n") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_a_killed_server_loses_nothing_that_was_said(
    environ: dict[str, str], tmp_path: Path, number: signal.Signals
) -> None:
    process = await _started(environ, tmp_path)
    assert process.stdin is not None
    assert process.stdout is not None
    async with asyncio.timeout(90):
        process.stdin.write(_frame(1, "session/new", cwd=str(tmp_path), mcpServers=[]))
        while b'"id":1' not in (line := await process.stdout.readline()):
            assert line
        session = json.loads(line)["result"]["sessionId"]
        process.stdin.write(_frame(2, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Sleep"}]))
        while b'"tool_call"' not in (line := await process.stdout.readline()):
            assert line
        process.send_signal(number)
        await process.wait()
        process = await _started(environ, tmp_path)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(_frame(1, "session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[]))
        lines = []
        while b'"id":1' not in (line := await process.stdout.readline()):
            lines.append(line)
        assert any(b"user_message_chunk" in line and b"Sleep" in line for line in lines)
        assert any(b'"status":"failed"' in line for line in lines)
        process.stdin.close()
        await process.wait()


async def test_initialize_is_answered_before_anything_of_the_kernel_is_loaded(environ: dict[str, str]) -> None:
    script = (
        "import asyncio, sys\n"
        "from hermes.surfaces.acp.editor_agent import EditorAgent\n"
        "from hermes.host.installation import Installation\n"
        "from hermes.host.wire.frames import WireRequest\n"
        "from pathlib import Path\n"
        "import os\n"
        "agent = EditorAgent(None, Installation(Path(os.environ['HERMES_HOME']), os.environ))\n"
        "asyncio.run(agent.handle(WireRequest('initialize', {'protocolVersion': 1}, 1)))\n"
        "print([name for name in sys.modules if name.startswith(('hermes.runtime', 'hermes.tools', 'hermes.state'))])\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, env=environ, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert out.strip() == b"[]"
