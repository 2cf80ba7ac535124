"""What an editor waits for, as ratios in one run.

    python bench/acp.py [--rounds 15] [--sessions 20]

initialize        from the start of `hermes acp` to its answer, against bare Python: at most 15
first request     from the first prompt of a process to its request on the wire, against `hermes chat -q` from its
                  start: no slower
from the start    the same from the start of the process, its handshake and session/new included; no bound
a later prompt    from another prompt in that session to its request
sessions at once  turns of many sessions in one process, started together, against one alone: none waits for another

Ends with 1 when a figure that must hold does not. Each pair is measured in turns; medians count.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
COMMAND = "import sys; from hermes.surfaces.cli.main import main; sys.exit(main())"
MOST_START, MOST_FIRST, MOST_AT_ONCE = 15.0, 1.0, 4.0
LATENCY_S = 0.5  # of the provider in the last figure: two requests a turn, so twenty in a row would take 20 s


class EditorProcess:
    """`hermes acp` and the one who started it."""

    def __init__(self, environ: dict[str, str], cwd: str) -> None:
        self.began = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", COMMAND, "acp"],
            env=environ,
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._number = 0

    def send(self, method: str, **params: Any) -> int:
        self._number += 1
        frame = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(frame).encode() + b"\n")
        self._process.stdin.flush()
        return self._number

    def reply(self, *numbers: int) -> dict[int, Any]:
        """The results of these requests, in whatever order they come."""
        found: dict[int, Any] = {}
        assert self._process.stdout is not None
        while len(found) < len(numbers):
            frame = json.loads(self._process.stdout.readline())
            if "method" not in frame and frame["id"] in numbers:
                found[frame["id"]] = frame["result"]
        return found

    def hello(self) -> None:
        self.reply(self.send("initialize", protocolVersion=1))

    def session(self, cwd: str) -> str:
        number = self.send("session/new", cwd=cwd, mcpServers=[])
        return str(self.reply(number)[number]["sessionId"])

    def prompt(self, session: str) -> int:
        return self.send("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Hi"}])

    def close(self) -> None:
        self._process.communicate()


class CannedProvider:
    """The provider in a process of its own, and when it got which request."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        self._out = process.stdout
        self.url = f"http://127.0.0.1:{int(self._out.readline())}/v1"

    def arrival(self, after: float) -> float:
        """When the first request came after this."""
        while (arrived := float(self._out.readline())) < after:
            continue
        return arrived


@contextmanager
def provider(latency_s: float, *options: str) -> Iterator[CannedProvider]:
    args = [sys.executable, str(ROOT / "bench" / "canned.py"), str(latency_s), *options]
    with subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield CannedProvider(process)
        assert process.stdin is not None
        process.stdin.close()


def environ_of(home: Path, url: str) -> dict[str, str]:
    """For children: as installed programs run, that is with their modules compiled."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    home.mkdir(mode=0o700, exist_ok=True)
    # A title of a session would be a request of its own.
    text = f"model: {{default: m, base_url: '{url}', context_length: 100000}}\n"
    (home / "config.yaml").write_text(f"{text}auxiliary: {{title_generation: {{enabled: false}}}}\n")
    return {**kept, "HERMES_HOME": str(home), "PYTHONPATH": str(ROOT / "src"), "NO_COLOR": "1"}


def initialize(folder: Path, rounds: int) -> bool:
    environ = environ_of(folder / "home", "http://127.0.0.1:9/v1")
    bare: list[float] = []
    ours: list[float] = []
    for _ in range(rounds + 1):
        began = time.monotonic()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        bare.append(time.monotonic() - began)
        editor = EditorProcess(environ, str(folder))
        editor.hello()
        ours.append(time.monotonic() - editor.began)
        editor.close()
    return told("initialize / bare Python", ours, bare, MOST_START)


def first_request(folder: Path, rounds: int) -> bool:
    line: list[float] = []
    ours: list[float] = []
    whole: list[float] = []
    later: list[float] = []
    for number in range(rounds + 1):
        with provider(0.0, "--arrivals", "--text") as server:
            environ = environ_of(folder / f"line-{number}", server.url)
            ask = [sys.executable, "-P", "-c", COMMAND, "chat", "-q", "Hi"]
            began = time.monotonic()
            subprocess.run(ask, check=True, env=environ, stdout=subprocess.DEVNULL, cwd=folder)
            line.append(server.arrival(began) - began)
        with provider(0.0, "--arrivals", "--text") as server:
            editor = EditorProcess(environ_of(folder / f"acp-{number}", server.url), str(folder))
            editor.send("initialize", protocolVersion=1)
            session = editor.session(str(folder))
            for times, is_first in ((ours, True), (later, False)):
                began = time.monotonic()
                turn = editor.prompt(session)
                arrived = server.arrival(began)
                times.append(arrived - began)
                if is_first:
                    whole.append(arrived - editor.began)
                editor.reply(turn)
            editor.close()
    told("from the start / hermes chat -q", whole, line, None)
    held = told("first request / hermes chat -q", ours, line, MOST_FIRST)
    return told("a later prompt / hermes chat -q", later, line, MOST_FIRST) and held


def at_once(folder: Path, count: int, rounds: int) -> bool:
    alone: list[float] = []
    together: list[float] = []
    with provider(LATENCY_S) as server:
        editor = EditorProcess(environ_of(folder / "many", server.url), str(folder))
        editor.hello()
        sessions = [editor.session(str(folder)) for _ in range(count)]
        for times, used in [(alone, sessions[:1]), (together, sessions)] * (rounds + 1):
            began = time.monotonic()
            editor.reply(*[editor.prompt(session) for session in used])
            times.append(time.monotonic() - began)
        editor.close()
    return told(f"{count} sessions at once / one", together, alone, MOST_AT_ONCE)


def told(name: str, ours: list[float], base: list[float], most: float | None) -> bool:
    """Print a line; whether it holds. The first round warms up."""
    value, against = statistics.median(ours[1:]), statistics.median(base[1:])
    ratio = value / against
    bound = "" if most is None else f"   at most {most:g}"
    print(f"{name:<36} {value * 1000:8.1f} ms / {against * 1000:8.1f} ms = {ratio:6.2f}{bound}", flush=True)
    return most is None or ratio <= most


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--sessions", type=int, default=20)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        held = [
            initialize(folder, wanted.rounds),
            first_request(folder, wanted.rounds),
            at_once(folder, wanted.sessions, max(1, wanted.rounds // 5)),
        ]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
