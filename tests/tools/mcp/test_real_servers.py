"""The reference servers from npm: everything, filesystem and memory, each over the border of a session."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from hermes.testing.replies import calls, says
from tests.tools.mcp.mcp_room import body, mcp_room

DONE = says("Done.")
pytestmark = pytest.mark.real


def npm_server(name: str) -> str:
    place = os.environ.get("HERMES_TEST_MCP_SERVERS", "")
    found = shutil.which(name, path=place) if place else None
    if found is None or shutil.which("node") is None:
        pytest.skip(f"{name} is not installed; scripts/install-mcp-servers installs it where npm is")
    return found


def node(name: str, *args: str, **entry: Any) -> dict[str, Any]:
    return {"command": "node", "args": [npm_server(name), *args], **entry}


async def test_everything_over_stdio(hermes_home: Path) -> None:
    servers = {"everything": node("mcp-server-everything", "stdio", supports_parallel_tool_calls=True)}
    script = (
        calls("mcp__everything__echo", message="hi"),
        calls("mcp__everything__get_sum", a=2, b=3) + calls("mcp__everything__echo", message="beside"),
        calls("mcp__everything__list_resources"),
        calls("mcp__everything__list_prompts"),
        calls("mcp__everything__get_tiny_image"),
        DONE,
    )
    async with mcp_room(hermes_home, servers, *script) as room:
        results = await room.ask()
        client = await room.client()
        manifest = client.servers["everything"].manifest
    assert manifest is not None
    assert manifest.has_resources
    assert manifest.has_prompts
    assert len(manifest.tools) >= 10
    assert body(results[0]) == {"result": "Echo: hi"}
    assert "5" in body(results[1])["result"]
    assert "beside" in body(results[2])["result"]
    assert body(results[3])["resources"][0].keys() >= {"uri", "name"}
    assert body(results[4])["prompts"][0]["name"]
    assert "MEDIA:" in body(results[5])["result"]


async def test_resources_and_prompts_are_read(hermes_home: Path) -> None:
    servers = {"everything": node("mcp-server-everything", "stdio")}
    async with mcp_room(hermes_home, servers) as room:
        link = await (await room.client()).servers["everything"].link()
        uri = str((await link.session.list_resources()).resources[0].uri)
        prompt = (await link.session.list_prompts()).prompts[0].name
    script = (
        calls("mcp__everything__read_resource", uri=uri),
        calls("mcp__everything__get_prompt", name=prompt),
        calls("mcp__everything__read_resource", uri="nowhere://at/all"),
        DONE,
    )
    async with mcp_room(hermes_home, servers, *script) as room:
        read, got, missing = await room.ask()
    assert body(read)["result"]
    assert body(got)["messages"][0].keys() == {"role", "content"}
    assert "MCP call failed" in body(missing)["error"]


async def test_filesystem_works_in_the_folder_of_the_session_and_nowhere_else(hermes_home: Path) -> None:
    work = hermes_home.parent / "work"
    servers = {"files": node("mcp-server-filesystem", str(work))}
    secret = hermes_home.parent / "home"
    secret.mkdir()
    (secret / "outside.txt").write_text("not yours")
    script = (
        calls("mcp__files__read_text_file", path=str(work / "note.txt")),
        calls("mcp__files__read_text_file", path=str(secret / "outside.txt")),
        DONE,
    )
    work.mkdir()
    (work / "note.txt").write_text("remember the milk")
    async with mcp_room(hermes_home, servers, *script) as room:
        inside, outside = await room.ask()
    assert "remember the milk" in inside
    assert "not yours" not in outside


async def test_memory_remembers_between_two_starts(hermes_home: Path) -> None:
    file = hermes_home.parent / "work" / "memory.json"
    servers = {"memory": node("mcp-server-memory", env={"MEMORY_FILE_PATH": str(file)})}
    ada = {"name": "Ada", "entityType": "person", "observations": ["likes tea"]}
    async with mcp_room(hermes_home, servers, calls("mcp__memory__create_entities", entities=[ada]), DONE) as room:
        assert "error" not in body((await room.ask())[0])
    async with mcp_room(hermes_home, servers, calls("mcp__memory__search_nodes", query="tea"), DONE) as room:
        found = (await room.ask())[0]
    assert "Ada" in found


@pytest.fixture
def everything_address() -> Iterator[str]:
    """The everything server over HTTP on loopback."""
    program = npm_server("mcp-server-everything")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    child = subprocess.Popen(
        ["node", program, "streamableHttp"],
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(2000):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            psutil.Process(child.pid).cpu_times()
            try:
                child.wait(0.02)
                raise AssertionError("the server ended")
            except subprocess.TimeoutExpired:
                continue
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        child.kill()
        child.wait()


async def test_everything_over_http(hermes_home: Path, everything_address: str) -> None:
    script = (calls("mcp__net__echo", message="over the wire"), DONE)
    async with mcp_room(hermes_home, {"net": {"url": everything_address}}, *script) as room:
        assert body((await room.ask())[0]) == {"result": "Echo: over the wire"}


def test_hermes_mcp_add_and_test_with_a_real_server(hermes_home: Path, tmp_path: Path) -> None:
    program = npm_server("mcp-server-filesystem")
    work = tmp_path / "work"
    work.mkdir()
    environ = {**os.environ, "HERMES_HOME": str(hermes_home)}
    line = [sys.executable, "-m", "hermes", "mcp"]

    def hermes(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*line, *words], env=environ, cwd=work, capture_output=True, text=True, timeout=120)

    added = hermes("add", "files", "--command", "node", "--args", program, str(work))
    assert added.returncode == 0, added.stderr
    assert "tokens in every request" in added.stdout
    tested = hermes("test", "files", "--json")
    assert tested.returncode == 0
    assert "read_text_file" in json.loads(tested.stdout)[0]["tools"]
