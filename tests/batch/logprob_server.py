"""A provider that tells its tokens, as vLLM and others do."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

CHUNKS: list[dict[str, Any]] = [
    {"delta": {"content": "He"}, "logprobs": {"content": [{"token": "He", "logprob": -0.5}]}, "token_ids": [11]},
    {"delta": {"content": "llo"}, "logprobs": {"content": [{"token": "llo", "logprob": -0.25}]}, "token_ids": [12]},
    {"delta": {}, "finish_reason": "stop", "logprobs": None, "token_ids": None},
]


class LogprobServer:
    """`with LogprobServer() as url`."""

    def __enter__(self) -> str:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._send(json.dumps({"data": [{"id": "scripted"}]}).encode(), "application/json")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        assert body["logprobs"] is True
        events = [json.dumps({"model": "scripted", "choices": [{"index": 0, **chunk}]}) for chunk in CHUNKS]
        self._send("".join(f"data: {one}\n\n" for one in (*events, "[DONE]")).encode(), "text/event-stream")

    def _send(self, data: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None: ...
