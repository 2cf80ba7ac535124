"""The program of a room in which everyday work with the network is done; prints a verdict per task as JSON."""

import asyncio
import functools
import hashlib
import http.server
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

from hermes import AIAgent
from hermes.runtime.facade import background as facade
from hermes.runtime.setup.process import shared
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import calls, says
from tests.border import everyday, registry_files, room, run_room, session, world
from tests.border.network import wires
from tests.border.network.work import WORK, NetworkTask

_LARGE = bytes(8 << 20)


class Api(http.server.SimpleHTTPRequestHandler):
    """Packages and repositories as files, and a few pages of its own."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/words")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.path in ("/words", "/large"):
            self._say(b"words of the api\n" if self.path == "/words" else _LARGE)
        else:
            super().do_GET()

    def do_POST(self) -> None:
        self._say(self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "17")
        self.end_headers()

    do_PUT = do_POST  # noqa: N815 - the base class looks for this name

    def _say(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
        """Say nothing."""


def main() -> None:
    plan: dict[str, Any] = json.loads(sys.argv[1])
    answers = os.dup(1)
    os.dup2(2, 1)
    path = everyday.search_path()
    room.enter([*room.interpreter_folders(), *run_room._tool_folders()])
    why = wires.lay()
    if why:
        os.write(answers, json.dumps({"missing": why}).encode())
        return
    everyday.start_ssh_server()
    listening = [_bound(host, port) for host, port in _PLACES]
    run_room._leave_first_process()
    run_room._become(run_room.Plan(names=[], is_root=plan["is_root"]))
    terminal = {"network": "ask", "network_hosts": ["api.test:8088"], "network_local": [8055]}
    guards = {"hard_stop_enabled": False, "warnings_enabled": False}
    world.make_template(json.dumps({"terminal": terminal, "tool_loop_guardrails": guards}) + "\n")
    with registry_files.index():
        registry_files._pages("http://index.test")
        _crate()
        _make_repositories()
        _certificate()
        _serve(listening)
        told = []
        for group, tasks in WORK.items():
            able = [task for task in tasks if not plan["names"] or f"{group}: {task.name}" in plan["names"]]
            missing = [task.name for task in able if not shutil.which(task.needs, path=f"{path}:/usr/sbin")]
            able = [task for task in able if task.name not in missing]
            told.append(_group(group, able, path) | {"missing": missing}) if able else None
    os.write(answers, json.dumps({"groups": told}).encode())


_PLACES = (
    (wires.SERVER, 80),
    (wires.SERVER, 443),
    (wires.SERVER, 8088),
    (wires.SERVER, 9000),
    ("127.0.0.1", 8055),
    ("127.0.0.1", 5432),
)


def _bound(host: str, port: int) -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((host, port))
    made.listen(128)
    return made


def _serve(listening: list[socket.socket]) -> None:
    handler = functools.partial(Api, directory=str(registry_files.FOLDER))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("/run/tls/api.pem", "/run/tls/api.key")
    for (_, port), listener in zip(_PLACES, listening, strict=True):
        if port == 5432:
            threading.Thread(target=_database, args=(listener,), daemon=True).start()
            continue
        server = http.server.ThreadingHTTPServer(listener.getsockname(), handler, bind_and_activate=False)
        server.socket.close()
        server.socket = context.wrap_socket(listener, server_side=True) if port == 443 else listener
        threading.Thread(target=server.serve_forever, daemon=True).start()


def _database(listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        connection.sendall(b"words of the database\n")
        connection.close()


def _crate() -> None:
    """One package of cargo's, in the words of its sparse index."""
    manifest = '[package]\nname = "tinycrate"\nversion = "1.0.0"\nedition = "2021"\n'
    files = {"Cargo.toml": manifest, "src/lib.rs": "pub fn seven() -> u32 {\n    7\n}\n"}
    folder = registry_files.FOLDER / "crates"
    place = folder / "ti" / "ny"
    place.mkdir(parents=True, exist_ok=True)
    archive = folder / "tinycrate-1.0.0.crate"
    registry_files._tar(archive, {f"tinycrate-1.0.0/{path}": text for path, text in files.items()})
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    row = {"name": "tinycrate", "vers": "1.0.0", "deps": [], "cksum": digest, "features": {}, "yanked": False}
    (place / "tinycrate").write_text(json.dumps(row) + "\n")
    (folder / "config.json").write_text(json.dumps({"dl": "http://index.test/crates/{crate}-{version}.crate"}))


def _certificate() -> None:
    folder = Path("/run/tls")
    folder.mkdir()
    request = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=api.test -addext subjectAltName=DNS:api.test"
    subprocess.run(
        [*request.split(), "-keyout", folder / "api.key", "-out", folder / "api.pem"], check=True, capture_output=True
    )
    shutil.copy(folder / "api.pem", registry_files.FOLDER / "ca.pem")


def _make_repositories() -> None:
    world.lay_out()
    script = """set -e; cd /home/.packages; rm -rf git; mkdir git; cd git
    git init -q -b main w; cd w; echo words of the forge > file; git add file
    git commit -q -m 'first of the forge'; cd ..
    for name in forge ssh; do git clone -q --bare w $name.git; git -C $name.git update-server-info; done
    ln -sfn /home/.packages/git/forge.git /home/.packages/forge.git; echo made"""
    said = world.by_person(script)
    assert said.endswith("made\n"), said


def _group(group: str, tasks: list[NetworkTask], path: str) -> dict[str, Any]:
    world.lay_out()
    registry_files.put_keys(world.HOME)
    (world.HOME / ".config/pip/pip.conf").write_text(
        "[global]\nindex-url = http://index.test/simple/\ntrusted-host = index.test\ndisable-pip-version-check = true\n"
    )
    (world.HOME / ".npmrc").write_text("registry=http://index.test/\n")
    (world.HOME / ".cargo/config.toml").write_text(
        '[source.crates-io]\nreplace-with = "ours"\n[source.ours]\nregistry = "sparse+http://index.test/crates/"\n'
    )
    world.by_person(
        "git remote set-url origin http://git.test/forge.git; git remote add ssh forge:/home/.packages/git/ssh.git"
    )
    env = {"PATH": path, "AIO_PYTHON": sys.executable, "UV_DEFAULT_INDEX": "http://index.test/simple/"}
    env |= {"UV_INSECURE_HOST": "index.test"}
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            os.close(ours)
            session.be_at_home(env)
            threading.Thread(target=_browse, daemon=True).start()
            with os.fdopen(theirs, "w") as file:
                json.dump(_talk(tasks), file)
            code = 0
        finally:
            os._exit(code)
    os.close(theirs)
    timer = threading.Timer(150, room.end, (child,))
    timer.start()
    with os.fdopen(ours) as file:
        text = file.read()
    timer.cancel()
    os.waitpid(child, 0)
    results, questions = json.loads(text) if text else ([], [])
    names = [f"{group}: {task.name}" for task in tasks]
    failed = {
        name: (results[place] if place < len(results) else "no result")[-900:]
        for place, (name, task) in enumerate(zip(names, tasks, strict=True))
        if place >= len(results) or everyday._failure(results[place]) or not _holds(results[place], task.expects)
    }
    return {"done": names, "failed": failed, "questions": questions}


def _holds(text: str, expects: str) -> bool:
    import re

    return re.search(expects, text, re.DOTALL) is not None


def _browse() -> None:
    """The person opens the dev server in a browser of their own, as soon as it is there."""
    until = time.monotonic() + 100
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen("http://127.0.0.1:8765/main.py", timeout=2) as answer:
                (world.WORK / "opened").write_bytes(answer.read())
            return
        except OSError:
            threading.Event().wait(0.1)


def _talk(tasks: list[NetworkTask]) -> tuple[list[str], list[str]]:
    questions: list[str] = []

    def ask(question: Any) -> str:
        questions.append(f"{question.description}: {question.command[:200]} {question.lines}")
        return "session" if "session" in question.choices else "once"

    model = ScriptedModel(
        *(calls(task.call.tool, **task.call.arguments) for task in tasks), says("Done."), says("Done.")
    )
    agent = AIAgent(model=model, cwd=str(world.WORK), approval_callback=ask)
    try:
        answer = agent.run_conversation("Please.")
        return [str(each["content"]) for each in answer["messages"] if each["role"] == "tool"], questions
    finally:
        agent.close()
        asyncio.run_coroutine_threadsafe(shared.close(), facade.get()).result(20)


if __name__ == "__main__":
    main()
