"""A real `hermes serve` in a home of its own, and clients that speak lines to it."""

import contextlib
import json
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from hermes.host.wire.serve_folder import ServeFolder

WAIT_S = 60.0
Json = dict[str, Any]


class Lines:
    """A client by hand: requests by number, replies by number, events in their order."""

    def __init__(self, send: Callable[[bytes], None], lines: Iterator[bytes]) -> None:
        self._send = send
        self._numbers = 0
        self._heard: queue.Queue[Json | None] = queue.Queue()
        self.replies: dict[int | None, Json] = {}
        self.events: list[Json] = []
        self._seen = 0
        threading.Thread(target=self._read, args=(lines,), daemon=True).start()

    def _read(self, lines: Iterator[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError):
            for line in lines:
                self._heard.put(json.loads(line))
        self._heard.put(None)

    def raw(self, data: bytes) -> None:
        self._send(data)

    def begin(self, method: str, **params: Any) -> int:
        self._numbers += 1
        request = {"jsonrpc": "2.0", "id": self._numbers, "method": method, "params": params}
        self._send(json.dumps(request).encode() + b"\n")
        return self._numbers

    def reply(self, number: int | None) -> Json:
        self._until(lambda: number in self.replies)
        return self.replies.pop(number)

    def ask(self, method: str, **params: Any) -> Any:
        found = self.reply(self.begin(method, **params))
        assert "result" in found, found
        return found["result"]

    def refused(self, method: str, **params: Any) -> int:
        """The code of the error that this gets."""
        found = self.reply(self.begin(method, **params))
        assert "error" in found, found
        return int(found["error"]["code"])

    def event(self, kind: str, session_id: str = "") -> Json:
        """The next event of this kind; those before it are passed over."""

        def find() -> Json | None:
            while self._seen < len(self.events):
                one = self.events[self._seen]
                self._seen += 1
                if one["type"] == kind and session_id in ("", one.get("session_id")):
                    return one
            return None

        found: list[Json] = []

        def look() -> bool:
            if (one := find()) is not None:
                found.append(one)
            return bool(found)

        self._until(look)
        return found[0]

    def is_closed(self) -> bool:
        """Whether the other side goes; whatever it says before is kept."""
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until:
            if not self._take():
                return True
        return False

    def _take(self) -> bool:
        message = self._heard.get(timeout=WAIT_S)
        if message is None:
            return False
        if message.get("method") == "event":
            self.events.append(message["params"])
        else:
            self.replies[message.get("id")] = message
        return True

    def _until(self, is_so: Callable[[], bool]) -> None:
        until = time.monotonic() + WAIT_S
        while not is_so():
            assert time.monotonic() < until, (self.replies, self.events[-5:])
            assert self._take(), "the server is gone"


class Served:
    """A server process and the way to it."""

    def __init__(self, process: "subprocess.Popen[bytes]", folder: ServeFolder) -> None:
        self.process = process
        self.folder = folder
        self._open: list[socket.socket] = []

    def socket(self) -> socket.socket:
        made = self.folder.connected()
        made.setblocking(True)
        made.settimeout(WAIT_S)
        self._open.append(made)
        return made

    def client(self) -> Lines:
        made = self.socket()
        return Lines(made.sendall, iter(made.makefile("rb")))

    def hang_up(self) -> None:
        """All clients go."""
        for each in self._open:
            each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._open.clear()

    def close(self) -> None:
        for each in self._open:
            each.close()
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(WAIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(WAIT_S)


@pytest.fixture
def uses_model(home: Path) -> Callable[[str], None]:
    """Have the home use the scripted server at this address."""

    def write(base_url: str, **more: str) -> None:
        extra = "".join(f"{line}\n" for line in more.values())
        (home / "config.yaml").write_text(f"model:\n  default: scripted\n  base_url: {base_url}\n{extra}")

    return write


Serve = Callable[..., "AbstractContextManager[Served]"]


def start_serve(environ: dict[str, str], cwd: Path, *words: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "hermes", "serve", *words],
        env=environ,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.fixture
def serve(home: Path, environ: dict[str, str], tmp_path: Path) -> Serve:
    """`with serve("--stay") as served`: a server that listens; it is gone afterwards."""

    @contextlib.contextmanager
    def run(*words: str) -> Iterator[Served]:
        served = Served(start_serve(environ, tmp_path, *words), ServeFolder(home))
        until = time.monotonic() + WAIT_S
        while True:
            try:
                served.folder.connected().close()
                break
            except OSError:
                assert time.monotonic() < until, "the server did not start"
                assert served.process.poll() is None, "the server has ended"
                time.sleep(0.02)
        try:
            yield served
        finally:
            served.close()

    return run
