"""The provider `honcho` over its own SDK, against a scripted server on loopback."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from hermes import AIAgent
from hermes.config.paths import env_file, hermes_home, write_private
from hermes.config.write import set_key
from hermes.testing.memory_store import MemoryStore
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import calls, says

pytest.importorskip("honcho", reason="honcho-ai is not installed: ./hermes --install-extra honcho")
THEN = "2026-01-02T10:00:00Z"


def message(number: int, content: str, day: str = THEN) -> dict[str, Any]:
    ids = {"id": f"m{number}", "peer_id": "user", "session_id": "old", "workspace_id": "hermes"}
    return {**ids, "content": content, "metadata": {}, "created_at": day, "token_count": 3}


class Service:
    """Answers as Honcho does, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any, str]] = []
        self.kept = threading.Event()
        self.is_down = False

    def answer(self, path: str, body: Any) -> Any:
        if path.endswith("/search"):
            newer = message(2, "Heron ships on Friday.", "2026-03-01T10:00:00Z")
            return [message(1, "Heron ships on Tuesday."), newer]
        if path.endswith("/chat"):
            return {"content": "They like tea."}
        if path.endswith("/messages"):
            self.kept.set()
            return [message(place, one["content"]) for place, one in enumerate(body["messages"])]
        name = (body or {}).get("id", "x")
        return {"id": name, "workspace_id": "hermes", "is_active": True, "created_at": THEN}


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"null")
            made.asked.append((self.path, body, self.headers.get("Authorization") or ""))
            data = json.dumps(made.answer(self.path, body)).encode()
            self.send_response(503 if made.is_down else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_PUT = do_POST  # noqa: N815 - the base class names them so

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    home = hermes_home()
    set_key(home, "memory.provider", "honcho")
    set_key(home, "honcho.base_url", f"http://127.0.0.1:{server.server_port}")
    write_private(env_file(home), "HONCHO_API_KEY=abc-key\n")
    yield made
    server.shutdown()
    server.server_close()
    thread.join()


async def test_it_recalls_with_days_keeps_the_turn_and_answers_its_tool(service: Service, tmp_path: Path) -> None:
    model = ScriptedModel(calls("honcho_context", query="What do they drink?"), says("Tea."))
    agent = AIAgent(model=model, store=MemoryStore(), cwd=str(tmp_path), session_id="now.1")
    result = await agent.arun_conversation("When does Heron ship?")
    assert service.kept.wait(10)
    await agent.aclose()

    lines = model.full_requests[0].units[-1].context.splitlines()
    assert lines[3:5] == ["- 2026-03-01: Heron ships on Friday.", "- 2026-01-02: Heron ships on Tuesday."]
    assert json.loads(result["messages"][2]["content"]) == {"answer": "They like tea."}
    (path, body, key) = next(one for one in service.asked if one[0].endswith("/messages"))
    assert path == "/v3/workspaces/hermes/sessions/now-1/messages"
    assert [(one["peer_id"], one["content"]) for one in body["messages"]] == [
        ("user", "When does Heron ship?"),
        ("hermes", "Tea."),
    ]
    assert key == "Bearer abc-key"


async def test_a_service_that_is_down_costs_its_words_only(service: Service, tmp_path: Path) -> None:
    service.is_down = True
    model = ScriptedModel(says("I do not know."))
    agent = AIAgent(model=model, store=MemoryStore(), cwd=str(tmp_path))
    result = await agent.arun_conversation("When does Heron ship?")
    await agent.aclose()

    assert result["final_response"] == "I do not know."
    assert model.full_requests[0].units[-1].context == ""
