"""Limits of time and size: each call has its own, whatever other calls and servers do."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from hermes.testing.replies import calls, says
from tests.tools.mcp.mcp_room import bare, body, mcp_room

DONE = says("Done.")
INITIALIZED = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "f", "version": "1"},
}
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("flood", "bomb", "fine")]


async def test_a_later_call_has_its_own_time(hermes_home: Path) -> None:
    """One timer stands for both: that of the first call rings while the second has time left."""
    script = (calls("mcp__bare__sleep", ms=400), calls("mcp__bare__wait"), calls("mcp__bare__sleep", ms=400), DONE)
    async with mcp_room(hermes_home, {"bare": bare(timeout=2)}, calls("mcp__bare__pid"), *script) as room:
        _, first, late, second = await room.ask()
    assert body(first)["result"] == body(second)["result"] == "slept"
    assert "MCP call timed out after 2.0s" in late


class Flood(BaseHTTPRequestHandler):
    """A server of the protocol over HTTP whose answers have no end, and do not say how long they are."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        match asked.get("method"), (asked.get("params") or {}).get("name"):
            case "initialize", _:
                self._answer(asked, INITIALIZED)
            case "tools/list", _:
                self._answer(asked, {"tools": TOOLS})
            case "tools/call", "flood":
                self._begin()
                piece = b"%x\r\n%s\r\n" % (1 << 20, b" " * (1 << 20))
                try:
                    for _ in range(1000):
                        self.wfile.write(piece)
                except OSError:
                    self.close_connection = True
            case "tools/call", "bomb":
                self._begin(("content-encoding", "gzip"))
                self.wfile.write(b"0\r\n\r\n")
            case "tools/call", _:
                self._answer(asked, {"content": [{"type": "text", "text": "fine"}]})
            case _:
                self.send_response(202)
                self.send_header("content-length", "0")
                self.end_headers()

    def do_HEAD(self) -> None:
        self.send_error(405)

    def do_GET(self) -> None:
        self.send_error(405)

    def _begin(self, *headers: tuple[str, str]) -> None:
        self.send_response(200)
        for name, value in (("content-type", "application/json"), ("transfer-encoding", "chunked"), *headers):
            self.send_header(name, value)
        self.end_headers()

    def _answer(self, asked: dict[str, Any], result: dict[str, Any]) -> None:
        text = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode()
        self._begin()
        self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(text), text))

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def flood() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Flood) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
        server.shutdown()
        thread.join(10)


async def test_an_answer_in_pieces_without_end_is_cut_and_the_server_goes_on(hermes_home: Path, flood: str) -> None:
    script = (calls("mcp__net__flood"), calls("mcp__net__bomb"), calls("mcp__net__fine"), DONE)
    async with mcp_room(hermes_home, {"net": {"url": flood}}, *script) as room:
        flooded, bomb, fine = await room.ask()
    assert "the answer has more than the 84 MB that are read" in body(flooded)["error"]
    assert "the answer is packed (gzip), which was not asked for" in body(bomb)["error"]
    assert body(fine) == {"result": "fine"}


FIRST = """
import asyncio, sys
from hermes import AIAgent
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import says

model = ScriptedModel(says("Hi."))
stream = model.stream

def watched(*args):
    print(*(name for name in sys.modules if name.split(".")[0] in ("mcp", "mcp_types", "anyio", "httpx2")
            or name.startswith("hermes.tools.mcp.")))
    return stream(*args)

model.stream = watched

async def main():
    agent = AIAgent(model=model)
    await agent.arun_conversation("Hi")
    await agent.aclose()

asyncio.run(main())
"""


async def test_until_the_first_request_nothing_is_imported_that_reaches_servers(
    hermes_home: Path, tmp_path: Path
) -> None:
    async with mcp_room(hermes_home, {"bare": bare()}, DONE) as room:
        await room.ask()
    argv = [sys.executable, "-c", FIRST]
    done = await asyncio.to_thread(
        lambda: subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    )
    modules = done.stdout.split()
    assert "hermes.tools.mcp.kept_offers" in modules, done.stderr
    assert not {"mcp", "anyio", "httpx2", "hermes.tools.mcp.connection", "hermes.tools.mcp.owned_server"} & set(modules)
