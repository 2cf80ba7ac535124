"""What people feel of the command line: the start of a command, a key while an answer streams, a stop, a long session.

Run: python bench/cli.py [--rounds N] [--keys N]

Ends with 1 when a figure that must hold does not. Keys are typed into a real terminal, and timed until the screen shows
them.
"""

import argparse
import asyncio
import fcntl
import os
import pty
import re
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from hermes.config.sections.display import Section as Display
from hermes.host.message_queue import MessageQueue
from hermes.state import SessionDB
from hermes.surfaces.cli.interactive.markup import Painter
from hermes.surfaces.cli.interactive.recent_messages import recent
from hermes.surfaces.cli.output import Output
from hermes.testing.replies import Reply, calls, says
from hermes.testing.server import RecordedRequest, ServerThread

SOURCE = Path(__file__).resolve().parent.parent / "src"
MOST_START_RATIO = 15.0
MOST_PROMPT_RATIO = 25.0
MOST_KEY_MS = 20.0
MOST_OPEN_MS = 300.0
MOST_STOP_MS = 1_000.0
MESSAGES = 10_000
WAIT_S = 30.0
PROMPT = b"\x1b[?2004h"  # bracketed paste is on: the prompt takes keys
TOKENS_A_SECOND = 200
CONTROL = re.compile(rb"\x1b(\[[0-9;?]*[ -/]*[@-~]|\][^\x07]*\x07|[^\[\]])")  # it has letters of its own


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--keys", type=int, default=100)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": folder,
            "HERMES_HOME": f"{folder}/home",
            "PYTHONPATH": str(SOURCE),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
        }
        Path(folder, "home").mkdir(mode=0o700)
        held = [
            typing(environ, folder, wanted.keys),
            typing(environ, folder, wanted.keys, flood="yes 'a line of a log'"),
            stopping(environ, folder),
            opening(Path(folder, "home")),
            opening_whole(environ, folder),
            start(environ, wanted.rounds),
            first_prompt(environ, folder, wanted.rounds),
        ]
    return 0 if all(held) else 1


def start(environ: Mapping[str, str], rounds: int) -> bool:
    """`hermes sessions list` beside a Python that does nothing."""
    listing = [sys.executable, "-m", "hermes.surfaces.cli.main", "sessions", "list"]
    ours, bare = [], []
    for _ in range(rounds):
        bare.append(_took([sys.executable, "-c", "pass"], environ))
        ours.append(_took(listing, environ))
    ratio = min(ours) / min(bare)  # the best of each: what else the machine does only ever adds
    times = f"{min(ours) * 1e3:.0f} ms, bare Python {min(bare) * 1e3:.0f} ms"
    return _told("hermes sessions list", f"{ratio:.1f} times bare Python ({times})", ratio <= MOST_START_RATIO)


def first_prompt(environ: Mapping[str, str], folder: str, rounds: int) -> bool:
    """`hermes`, from Enter in the shell to a prompt that takes keys, beside a Python that does nothing."""
    ours, bare = [], []
    for _ in range(rounds):
        bare.append(_took([sys.executable, "-c", "pass"], environ))
        began = time.perf_counter()
        with _terminal("http://127.0.0.1:9/v1", environ, folder) as screen:
            _until(screen, PROMPT)
            ours.append(time.perf_counter() - began)
    ratio = min(ours) / min(bare)
    times = f"{min(ours) * 1e3:.0f} ms, bare Python {min(bare) * 1e3:.0f} ms"
    return _told("the first prompt", f"{ratio:.1f} times bare Python ({times})", ratio <= MOST_PROMPT_RATIO)


def opening(home: Path) -> bool:
    """A session of many messages, up to its recent past on the screen; in this process, so without the start."""
    with SessionDB(home / "state.db") as db:
        db.create_session("long", "cli", title="A long session")
        pairs = [("user", "A question of some length?"), ("assistant", "An **answer** with\n\n- a list\n\nand more.")]
        db.replace_messages(
            "long", [{"role": role, "content": text} for _ in range(MESSAGES // 2) for role, text in pairs]
        )
    took = []
    for _ in range(5):
        began = time.perf_counter()
        with SessionDB(home / "state.db") as db:
            shown = asyncio.run(_opened(db))
        took.append((time.perf_counter() - began) * 1e3)
        assert f"{MESSAGES} messages" in shown
    worst = max(took)
    return _told(
        f"open {MESSAGES} messages",
        f"{statistics.median(took):.0f} ms, at most {worst:.0f} ms",
        statistics.median(took) <= MOST_OPEN_MS,
    )


def opening_whole(environ: Mapping[str, str], folder: str) -> bool:
    """The same with the command around it: from Enter in the shell to the prompt, beside a new session."""
    took: dict[str, list[float]] = {"new": [], "long": []}
    for _ in range(3):
        for name, words in (("new", ()), ("long", ("--resume", "long"))):
            began = time.perf_counter()
            with _terminal("http://127.0.0.1:9/v1", environ, folder, *words) as screen:
                _until(screen, PROMPT, f"{MESSAGES} messages".encode() if words else b"Ask something")
                took[name].append((time.perf_counter() - began) * 1e3)
    new, long = (statistics.median(took[name]) for name in ("new", "long"))
    words_ = f"{long - new:+.0f} ms beside a new session ({long:.0f} ms and {new:.0f} ms with the start of Python)"
    return _told(f"hermes --resume with {MESSAGES} messages", words_, long - new <= MOST_OPEN_MS)


async def _opened(db: SessionDB) -> str:
    await MessageQueue(db, "long", str).open()
    return recent(db, "long", Display(), Painter(Output(sys.stdout, sys.stderr, {})))


def typing(environ: Mapping[str, str], folder: str, keys: int, flood: str = "") -> bool:
    """The time from a key to the screen while an answer streams, and the command `flood` runs beside it."""
    piece = "word "  # about a token
    seconds = keys * 0.06 + 10
    text = (piece * 40 + "\n\n") * int(seconds * TOKENS_A_SECOND / 40)
    slow = says(text).timed(chunk_size=len(piece), chunk_delay_s=1 / TOKENS_A_SECOND)

    def script(request: RecordedRequest) -> Reply:
        body: Any = request.json
        return says("A title") if "Give a title" in str(body["messages"][0]) else slow

    with ServerThread(script) as server, _terminal(server.base_url, environ, folder) as screen:
        _until(screen, PROMPT)
        os.write(screen, b"Talk.\r")
        _until(screen, b"word word")
        if flood:
            os.write(screen, f"!{flood}\r".encode())
            _until(screen, b"  a line of a log")
        before = _drained(screen, 1.0)
        took = [_key(screen, "abcdefghij"[number % 10]) * 1e3 for number in range(keys)]
    streamed = before.count(b"word")
    took.sort()
    median, high = statistics.median(took), took[int(len(took) * 0.95)]
    words = (
        f"{median:.1f} ms a key, 95 of 100 under {high:.1f} ms, worst {took[-1]:.1f} ms ({streamed} words drawn in 1 s)"
    )
    beside = ", a command floods its tail" if flood else ""
    return _told(f"typing at {TOKENS_A_SECOND} tokens/s{beside}", words, high <= MOST_KEY_MS)


def stopping(environ: Mapping[str, str], folder: str) -> bool:
    """From Esc to a prompt that is ready again, during an answer and during a command that does not heed TERM."""
    talk = says("word " * 20_000).timed(chunk_size=5, chunk_delay_s=1 / TOKENS_A_SECOND)
    work = calls("terminal", command="trap '' TERM; touch begun; sleep 60; sleep 60")

    def script(request: RecordedRequest) -> Reply:
        body: Any = request.json
        return work if "Work" in str(body["messages"][-1]["content"]) else talk

    took: dict[str, list[float]] = {"answer": [], "command": []}
    with ServerThread(script) as server, _terminal(server.base_url, environ, folder) as screen:
        _until(screen, PROMPT)
        for _ in range(5):
            for kind, typed, seen in (("answer", b"Talk.\r", b"word word"), ("command", b"Work.\r", b"(0 s)")):
                os.write(screen, typed)
                _until(screen, seen)
                _drained(screen, 0.5)  # so that the command runs
                began = time.perf_counter()
                os.write(screen, b"\x1b")
                _until(screen, b"Stopped.")
                took[kind].append((time.perf_counter() - began) * 1e3)
                _drained(screen, 0.3)
    worst = max(max(each) for each in took.values())
    words = ", ".join(f"{kind} {statistics.median(each):.0f} ms" for kind, each in took.items())
    return _told("Esc to ready", f"{words}, at most {worst:.0f} ms", worst <= MOST_STOP_MS)


def _key(screen: int, key: str) -> float:
    """Seconds until the key is echoed. What is drawn meanwhile holds small letters only."""
    _drained(screen, 0.037)
    seen, began = b"", time.perf_counter()
    os.write(screen, key.upper().encode())
    while key.upper().encode() not in CONTROL.sub(b"", seen):
        if not select.select([screen], [], [], WAIT_S)[0]:
            raise TimeoutError(f"{key.upper()!r} did not appear in {seen[-500:]!r}")
        seen += os.read(screen, 65_536)
    return time.perf_counter() - began


@contextmanager
def _terminal(base_url: str, environ: Mapping[str, str], folder: str, *more: str) -> Iterator[int]:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    words = [sys.executable, "-m", "hermes.surfaces.cli.main", "--model", "scripted", "--base-url", base_url, *more]
    process = subprocess.Popen(
        words, env=dict(environ), cwd=folder, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)
    try:
        yield master
    finally:
        process.terminate()
        _drained(master, 0.5)
        process.wait(timeout=20)
        os.close(master)


def _until(screen: int, *wanted: bytes) -> None:
    seen, deadline = b"", time.perf_counter() + WAIT_S
    while not all(each in seen for each in wanted):
        left = deadline - time.perf_counter()
        if left <= 0 or not select.select([screen], [], [], left)[0]:
            raise TimeoutError(f"{wanted!r} did not appear in {seen[-500:]!r}")
        seen += os.read(screen, 65_536)


def _drained(screen: int, seconds: float) -> bytes:
    seen, deadline = b"", time.perf_counter() + seconds
    while (left := deadline - time.perf_counter()) > 0:
        if select.select([screen], [], [], left)[0]:
            try:
                seen += os.read(screen, 65_536)
            except OSError:  # the other end is closed
                return seen
    return seen


def _took(words: list[str], environ: Mapping[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run(words, env=dict(environ), capture_output=True, check=True)
    return time.perf_counter() - began


def _told(what: str, figure: str, holds: bool) -> bool:
    print(f"{'ok  ' if holds else 'MISS'} {what}: {figure}")
    return holds


if __name__ == "__main__":
    sys.exit(main())
