"""A terminal that wraps its lines anew when its window changes: nothing of the live part stays behind."""

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes.testing.replies import calls, says
from hermes.testing.server import ServerThread
from tests.surfaces.cli.interactive.terminal import WAIT_S, answering

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")

BARE = Path(__file__).parents[3] / "tools" / "mcp" / "bare_server.py"
WORDS = " ".join(f"word{number}" for number in range(2_000))


class Tmux:
    """One window of a tmux server of its own."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    def run(self, *words: str) -> str:
        done = subprocess.run(["tmux", "-S", str(self._socket), *words], capture_output=True, text=True, timeout=20)
        return done.stdout

    def start(self, environ: dict[str, str], folder: Path, base_url: str) -> None:
        """A conversation, up to its prompt."""
        settings = [f"{name}={value}" for name, value in environ.items()]
        words = [sys.executable, "-m", "hermes.surfaces.cli.main", "--model", "scripted", "--base-url", base_url]
        size = ("-x", "100", "-y", "30", "-c", str(folder))
        self.run("-f", "/dev/null", "new-session", "-d", *size, "env", *settings, *words)
        self.wait_until(lambda seen: "scripted · " in seen and "Ask something" in seen)

    def screen(self) -> str:
        return self.run("capture-pane", "-p").rstrip()

    def wait_until(self, is_true: Callable[[str], bool]) -> str:
        deadline = time.monotonic() + WAIT_S
        while not is_true(seen := self.screen()):
            assert time.monotonic() < deadline, seen
        return seen


def is_clean(seen: str) -> bool:
    """Nothing is on the screen twice; the word that is being written may look like another."""
    found = re.findall(r"word\d+\b", seen)
    once = (seen.count("a draft"), seen.count("scripted · ")) == (1, 1) and seen.count("sixty") == 1
    return once and len(found) > 50 and len(set(found)) >= len(found) - 1


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    made = Tmux(tmp_path / "tmux")
    try:
        yield made
    finally:
        made.run("kill-server")


def test_how_far_a_call_to_an_mcp_server_is_stands_on_its_line(
    tmux: Tmux, environ: dict[str, str], project: Path
) -> None:
    servers = {"bare": {"command": sys.executable, "args": [str(BARE)]}}
    settings = {"mcp_servers": servers, "mcp_discovery_timeout": 30}
    Path(environ["HERMES_HOME"], "config.yaml").write_text(json.dumps(settings))
    with ServerThread(answering({"Climb": [calls("mcp__bare__climb"), says("Up.")]})) as server:
        tmux.start(environ, project, server.base_url)
        tmux.run("send-keys", "Climb.", "Enter")
        line = re.compile(r"^● mcp__bare__climb · the first \[31mledge \(1 of 3\) \(\d+ s\)$", re.MULTILINE)
        tmux.wait_until(lambda seen: line.search(seen) is not None)
        tmux.run("send-keys", "Escape")
        tmux.wait_until(lambda seen: "Stopped." in seen and "ledge" not in seen)
        tmux.run("send-keys", "C-d")
        tmux.wait_until(lambda _: not tmux.run("list-sessions"))


def test_a_narrower_and_a_wider_window(tmux: Tmux, environ: dict[str, str], project: Path) -> None:
    script = answering({"Talk": [says(WORDS).timed(chunk_size=8, chunk_delay_s=0.02)]})
    with ServerThread(script) as server:
        tmux.start(environ, project, server.base_url)
        assert tmux.run("capture-pane", "-p", "-S", "-50").count("scripted · ") == 1
        tmux.run("send-keys", "Talk.", "Enter")
        tmux.wait_until(lambda seen: "word50" in seen)
        tmux.run("send-keys", "-l", "a draft that is long enough to need a second row in a window of sixty columns")
        tmux.wait_until(lambda seen: "sixty columns" in seen)
        for columns in ("60", "110", "72"):  # none of them breaks a word that is looked for
            tmux.run("resize-window", "-x", columns, "-y", "30")
            # tmux tells the program of its new size up to a quarter of a second after it has wrapped the lines.
            tmux.wait_until(is_clean)
        tmux.run("send-keys", "Escape")
        tmux.wait_until(lambda seen: "Stopped." in seen)
        tmux.run("send-keys", "C-u")
        tmux.run("send-keys", "C-d")
        tmux.wait_until(lambda seen: "scripted · " not in seen)
