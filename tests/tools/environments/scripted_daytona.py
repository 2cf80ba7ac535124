"""A scripted peer for the daytona backend: the few requests of Daytona's REST API that its SDK makes, answered.

A sandbox is a folder of this machine; its commands are run by a plain bash with an environment of its own.
"""

import contextlib
import json
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class ScriptedDaytona:
    """Serves until `close`. `requests` are method and path of all that came; `sandboxes` are by id."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.requests: list[str] = []
        self.sandboxes: dict[str, dict[str, Any]] = {}
        self.running: list[subprocess.Popen[bytes]] = []
        peer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
                """Quiet."""

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                peer.requests.append(f"{self.command} {self.path}")
                if self.headers.get("Authorization") != "Bearer right-key":
                    return self.send(401, {"message": "Unauthorized", "statusCode": 401})
                return self.send(*peer.serve(self.command, self.path, json.loads(body) if body else {}))

            do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815 - the base class's names

            def send(self, status: int, value: dict[str, Any]) -> None:
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                with contextlib.suppress(BrokenPipeError):  # the client no longer waits
                    self.end_headers()
                    self.wfile.write(data)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.wait()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def serve(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        words = path.partition("?")[0].strip("/").split("/")
        if words[:2] == ["api", "sandbox"]:
            return self._sandbox(method, words[2:], body)
        if words[:1] == ["toolbox"] and words[2:] == ["process", "execute"]:
            return self._execute(words[1], body)
        return 404, {"message": f"no such path {path}", "statusCode": 404}

    def _sandbox(self, method: str, words: list[str], body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if method == "POST" and not words:
            ident = f"sandbox-{len(self.sandboxes) + 1}"
            (self.folder / ident).mkdir(parents=True)
            self.sandboxes[ident] = {**_BLANK, **self._described(ident, body)}
            return 200, self.sandboxes[ident]
        found = next(
            (each for each in self.sandboxes.values() if words and words[0] in (each["id"], each["name"])), None
        )
        if found is None or found["state"] == "destroyed":
            return 404, {"message": "Sandbox not found", "statusCode": 404}
        if words[1:] == ["toolbox-proxy-url"]:
            return 200, {"url": found["toolboxProxyUrl"]}
        if method == "DELETE":
            found["state"] = "destroyed"
        elif words[1:] in (["stop"], ["start"]):
            found["state"] = "stopped" if words[1] == "stop" else "started"
        return 200, found

    def _described(self, ident: str, body: dict[str, Any]) -> dict[str, Any]:
        return {
            "id": ident,
            "name": body.get("name") or ident,
            "labels": body.get("labels") or {},
            "state": "started",
            "toolboxProxyUrl": f"http://127.0.0.1:{self.port}/toolbox",
        }

    def _execute(self, ident: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        sandbox = self.sandboxes.get(ident)
        if sandbox is None or sandbox["state"] != "started":
            return 400, {"message": "Sandbox is not running", "statusCode": 400}
        folder = self.folder / ident
        process = subprocess.Popen(
            ["bash", "-c", body["command"]],
            cwd=folder,
            env={"HOME": str(folder), "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.running.append(process)
        output, _ = process.communicate()
        return 200, {"exitCode": process.returncode, "result": output.decode("utf-8", "replace")}


_BLANK: dict[str, Any] = {
    "organizationId": "o",
    "user": "daytona",
    "env": {},
    "public": False,
    "networkBlockAll": False,
    "target": "us",
    "cpu": 1,
    "gpu": 0,
    "memory": 1,
    "disk": 3,
    "kvm": False,
    "spot": False,
    "recoverable": False,
}
