"""Two hundred requests of whole turns, byte by byte as they were recorded: moving code moves nothing on the wire.

A change that is meant to change them records them anew: `HERMES_RECORD=1 ./check tests/e2e/test_recorded_requests.py`.
"""

import hashlib
import os
import random
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hermes import AIAgent
from hermes.runtime.setup.process import shared
from hermes.testing.replies import Reply, calls, calls_with, says, thinks
from hermes.testing.server import ScriptedServer

RECORDED = Path(__file__).with_name("recorded_requests")
WIRES = ("chat_completions", "codex_responses", "anthropic_messages", "bedrock_converse")
CONVERSATIONS = 10
REQUESTS = 5  # of each conversation
TOOLS = ["file", "todo", "terminal"]


@pytest.fixture(autouse=True)
async def release() -> AsyncIterator[None]:
    yield
    await shared.close()


def steps(rng: random.Random) -> list[Reply]:
    """What the model says before the last word: calls with every kind of result, words and thoughts beside them."""
    kinds = [
        calls("write_file", path="notes.txt", content="one\ntwo\n"),
        calls("read_file", path="notes.txt"),
        calls("read_file", path="gone.txt"),
        calls("search_files", pattern="two"),
        calls("patch", path="notes.txt", old_string="two", new_string="drei \N{SNOWMAN}"),
        calls("todo", todos=[{"id": "1", "content": "look", "status": "in_progress"}]),
        calls("terminal", command="printf 'plain\\n'; exit 3"),
        calls("no_such_tool", x=1),
        calls_with("read_file", '{"path": '),
    ]
    chosen = [rng.choice(kinds) for _ in range(REQUESTS - 2)]
    if rng.random() < 0.5:
        chosen[0] = says("Let me look.") + chosen[0]
    if rng.random() < 0.5:
        chosen[1] = thinks("First this, then that.") + chosen[1] + calls("todo")
    return chosen


async def sent(wire: str, number: int, workspace: Path) -> list[bytes]:
    """The bodies of one conversation of two turns, without what differs from run to run."""
    rng = random.Random(f"{wire} {number}")
    script = [*steps(rng), says("Done."), says("Yes.")]
    async with ScriptedServer(script) as server:
        keywords: dict[str, Any] = {
            "model": "anthropic.claude-scripted-v1:0" if wire == "bedrock_converse" else "scripted",
            "base_url": server.base_url if wire in WIRES[:2] else server.url,
            "api_mode": wire,
            "api_key": "k",
            "session_id": f"20261117_120000_{number:06x}",
            "enabled_toolsets": TOOLS,
            "auto_title": False,
            "cwd": str(workspace),
        }
        agent = AIAgent(**keywords)
        await agent.arun_conversation("Look into notes.txt, please.")
        await agent.arun_conversation("Is that all?")
        await agent.aclose()
    return [_steady(request.raw, workspace) for request in server.requests]


def _steady(body: bytes, workspace: Path) -> bytes:
    text = body.decode().replace(str(workspace), "/workspace")
    text = re.sub(r"Conversation started: \w+, \d+ \w+ \d+", "Conversation started: a day", text)
    text = re.sub(r"Host system: \w+\.", "Host system: this.", text)
    return re.sub(r"call_[0-9a-f]{12,}", "call_x", text).encode()


@pytest.mark.parametrize("wire", WIRES)
async def test_every_request_is_byte_for_byte_as_recorded(wire: str, tmp_path: Path) -> None:
    found = []
    for number in range(CONVERSATIONS):
        workspace = tmp_path / f"{number}"
        workspace.mkdir()
        bodies = await sent(wire, number, workspace)
        assert len(bodies) == REQUESTS
        found += [f"{number}.{step} {hashlib.sha256(body).hexdigest()}" for step, body in enumerate(bodies)]
    file = RECORDED / f"{wire}.txt"
    if os.environ.get("HERMES_RECORD") == "1":
        file.parent.mkdir(exist_ok=True)
        file.write_text("\n".join(found) + "\n", encoding="utf-8")
    assert found == file.read_text(encoding="utf-8").splitlines()
