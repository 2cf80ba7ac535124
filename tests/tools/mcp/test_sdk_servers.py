"""A server on the SDK: over stdio, streamable HTTP and SSE, with sessions that are lost, and with a sign-in."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from hermes.host.mcp_care import McpCare
from hermes.testing.replies import calls, says
from hermes.tools.mcp.server_config import ServerConfig
from hermes.tools.mcp.sign_in import TokenFile
from tests.tools.mcp.mcp_room import body, eventually, mcp_room, settings_of, write_config

DONE = says("Done.")
SERVER = Path(__file__).with_name("sdk_server.py")
Serve = Callable[..., str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start a server on loopback; its address."""
    children: list[subprocess.Popen[bytes]] = []

    def start(mode: str, port: int = 0, **environ: str) -> str:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            port = probe.getsockname()[1]
        child = subprocess.Popen([sys.executable, str(SERVER), mode, str(port)], env={**os.environ, **environ})
        children.append(child)
        for _ in range(3000):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return f"http://127.0.0.1:{port}"
            try:
                child.wait(0.02)
                break
            except subprocess.TimeoutExpired:
                continue
        raise AssertionError("the server did not start")

    start.children = children  # type: ignore[attr-defined]
    yield start
    for child in children:
        child.kill()
        child.wait()


def got(address: str) -> Any:
    with urlopen(address) as answer:
        return json.loads(answer.read())


async def test_stdio_with_structured_results_resources_and_prompts(hermes_home: Path) -> None:
    servers = {"sdk": {"command": sys.executable, "args": [str(SERVER), "stdio"]}}
    script = (
        calls("mcp__sdk__add", a=2, b=3),
        calls("mcp__sdk__read_resource", uri="note://first"),
        calls("mcp__sdk__get_prompt", name="greet", arguments={"name": "Ada"}),
        DONE,
    )
    async with mcp_room(hermes_home, servers, *script) as room:
        added, read, prompt = await room.ask()
    assert body(added)["structuredContent"] == {"total": 5}
    assert body(read) == {"result": "the first note"}
    assert body(prompt)["messages"] == [{"role": "user", "content": "Greet Ada."}]


@pytest.mark.parametrize("mode", ["http", "sse"])
async def test_over_the_network(hermes_home: Path, serve: Serve, mode: str) -> None:
    address = await asyncio.to_thread(serve, mode)
    entry = {"url": f"{address}/{'sse' if mode == 'sse' else 'mcp'}", "transport": mode}
    script = (calls("mcp__net__dig"), calls("mcp__net__shout", text="hello"), DONE)
    async with mcp_room(hermes_home, {"net": entry}, *script) as room:
        deep, said = await room.ask()
    assert "the answer is nested too deep to be read" in body(deep)["error"]
    assert body(said)["result"] == "HELLO"


async def test_a_lost_session_is_opened_anew_and_the_call_made_once(hermes_home: Path, serve: Serve) -> None:
    address = await asyncio.to_thread(serve, "http")
    one, two = calls("mcp__net__add", a=1, b=1), calls("mcp__net__add", a=2, b=2)
    async with mcp_room(hermes_home, {"net": {"url": f"{address}/mcp"}}, one, DONE, two, DONE) as room:
        await room.ask()
        await asyncio.to_thread(got, f"{address}/forget")
        result = (await room.ask())[0]
        stats = await asyncio.to_thread(got, f"{address}/stats")
    assert body(result)["structuredContent"] == {"total": 4}
    assert stats["calls"] == 2


async def test_a_server_that_comes_back_serves_again_without_a_restart(hermes_home: Path, serve: Serve) -> None:
    address = await asyncio.to_thread(serve, "http")
    port = int(address.rpartition(":")[2])
    again = calls("mcp__net__shout", text="x")
    script = (again, DONE, again, DONE, again, DONE)
    async with mcp_room(hermes_home, {"net": {"url": f"{address}/mcp"}}, *script) as room:
        assert body((await room.ask())[0])["result"] == "X"
        child = serve.children[0]  # type: ignore[attr-defined]
        child.kill()
        child.wait()
        down = (await room.ask())[0]
        assert "error" in body(down)
        await asyncio.to_thread(serve, "http", port)
        assert body((await room.ask())[0])["result"] == "X"
        assert len({tuple(tool.name for tool in one.tools) for one in room.model.full_requests}) == 1


async def test_an_address_of_something_else_is_told_as_that(hermes_home: Path, serve: Serve) -> None:
    address = await asyncio.to_thread(serve, "http")
    async with mcp_room(hermes_home, {"page": {"url": f"{address}/page"}}, DONE) as room:
        await room.ask()
        assert "there is no MCP server at this address" in room.heard.told()


# -- signing in ------------------------------------------------------------------------------------------------------


def oauth_care(home: Path, address: str, **oauth: Any) -> tuple[McpCare, ServerConfig]:
    write_config(home, {"net": {"url": f"{address}/mcp", "auth": "oauth", "oauth": oauth}})
    care = McpCare(settings_of(home))
    return care, care.config("net")


def signed_in(care: McpCare, config: ServerConfig, *, paste: bool = False) -> str:
    """Sign in as a person would: with a browser, or by pasting where the browser ended; the error, if any."""
    pasted: list[str] = []

    def show(url: str) -> None:
        if not paste:
            import threading

            threading.Thread(target=lambda: urlopen(url).read(), daemon=True).start()
            return
        from http.client import HTTPConnection
        from urllib.parse import urlsplit

        parts = urlsplit(url)
        connection = HTTPConnection(parts.netloc)
        connection.request("GET", f"{parts.path}?{parts.query}")
        pasted.append(connection.getresponse().headers["location"])
        connection.close()

    async def typed() -> str:
        await eventually(lambda: bool(pasted))
        return pasted[0]

    return care.login(config, show, typed if paste else None).error


@pytest.mark.parametrize("paste", [False, True])
def test_sign_in_with_a_browser_or_by_pasting(hermes_home: Path, serve: Serve, paste: bool) -> None:
    care, config = oauth_care(hermes_home, serve("oauth"))
    assert "run: hermes mcp login net" in care.trial(config).error
    assert signed_in(care, config, paste=paste) == ""
    file = hermes_home / "mcp-tokens" / "net.json"
    assert file.stat().st_mode & 0o777 == 0o600
    found = care.trial(config)
    assert found.manifest is not None
    assert len(found.manifest.tools) == 3
    assert not list(file.parent.glob("*signing-in*"))


async def test_needs_sign_in_is_told_and_a_call_says_what_to_do(hermes_home: Path, serve: Serve) -> None:
    address = await asyncio.to_thread(serve, "oauth")
    servers = {"net": {"url": f"{address}/mcp", "auth": "oauth"}}
    async with mcp_room(hermes_home, servers, DONE) as room:
        await room.ask()
        assert "hermes mcp login net" in room.heard.told()
        assert (await room.client()).servers["net"].state == "sign-in"
    assert (await asyncio.to_thread(got, f"{address}/stats"))["authorize"] == 0


def test_that_somebody_has_to_sign_in_is_told_in_a_sentence(hermes_home: Path, serve: Serve) -> None:
    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        argv = [sys.executable, "-m", "hermes.surfaces.cli.main", "mcp", *words]
        return subprocess.run(argv, env={**os.environ, "HERMES_HOME": str(hermes_home)}, capture_output=True, text=True)

    added = run("add", "net", "--url", f"{serve('oauth')}/mcp", "--oauth")
    assert (added.stdout, added.stderr) == ("net is added. Sign in with: hermes mcp login net\n", "")
    tried = run("test", "net")
    assert tried.stderr == "error: net: it wants you to sign in; run: hermes mcp login net\n"
    assert tried.returncode == 1


def test_thirty_days_of_hourly_expiry_need_nobody(hermes_home: Path, serve: Serve) -> None:
    """Each start finds an expired token and refreshes it where it once came from; the refresh token stays."""
    address = serve("oauth")
    care, config = oauth_care(hermes_home, address)
    assert signed_in(care, config) == ""
    rounds = 720 if os.environ.get("HERMES_TEST_FULL") == "1" else 4
    for _ in range(rounds):
        file = TokenFile(hermes_home, config)
        stored = file.read()
        assert stored.tokens is not None
        from msgspec.structs import replace

        file.write(replace(stored, expires_at=time.time() - 1))
        assert care.trial(config).error == ""
        assert file.read().tokens != stored.tokens
    stats = got(f"{address}/stats")
    assert stats["refresh"] == rounds
    assert stats["authorize"] == 1


def test_a_token_that_is_refused_before_its_time_is_refreshed(hermes_home: Path, serve: Serve) -> None:
    address = serve("oauth")
    care, config = oauth_care(hermes_home, address)
    assert signed_in(care, config) == ""
    got(f"{address}/forget")
    assert care.trial(config).error == ""
    assert got(f"{address}/stats")["authorize"] == 1


def test_a_failed_sign_in_keeps_what_was_there(hermes_home: Path, serve: Serve) -> None:
    address = serve("oauth")
    care, config = oauth_care(hermes_home, address)
    assert signed_in(care, config) == ""
    before = (hermes_home / "mcp-tokens" / "net.json").read_bytes()

    async def refused() -> str:
        return "http://127.0.0.1/callback?error=access_denied&error_description=you+said+no"

    failed = care.login(config, lambda _: None, refused)
    assert "you said no" in failed.error
    assert (hermes_home / "mcp-tokens" / "net.json").read_bytes() == before
    assert care.trial(config).error == ""
