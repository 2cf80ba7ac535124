"""Do the twenty things of a newcomer's first hour in tmux, and keep the screens in docs/screens/first-hour/.

    .venv-check/bin/python scripts/first_hour.py [--keep]

In 110 and 60 columns, on a dark and a light background, against the scripted server. Each thing waits for what must be
on the screen; what is missing ends the run with exit code 1. `--keep` writes the screens to docs/.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hermes.testing.replies import Reply, calls, says
from hermes.testing.server import RecordedRequest, ServerThread

ROOT = Path(__file__).resolve().parent.parent
SCREENS = ROOT / "docs" / "screens" / "first-hour"
WAIT_S = 40.0
ROWS = 40
TODO = [
    {"id": "1", "content": "Read the file", "status": "completed"},
    {"id": "2", "content": "Change the greeting", "status": "in_progress"},
    {"id": "3", "content": "Run it", "status": "pending"},
]
ANSWER = "# Done\n\n1. first\n2. second\n\nUse `hello.py`:\n\n```python\nprint('hi')\n```"
TURNS: dict[str, list[Reply]] = {
    "Say hello": [says("Hello. This is **Hermes**.")],
    "Format": [says(ANSWER)],
    "Count slowly": [calls("terminal", command="for i in 1 2 3 4 5 6; do echo line $i; sleep 0.4; done"), says("Six.")],
    "Count for ever": [calls("terminal", command="for i in $(seq 1 600); do echo n $i; sleep 0.2; done"), says("No.")],
    "Plan it": [calls("todo", todos=TODO), says("Three steps.")],
    "Change it": [calls("write_file", path="hello.py", content="print('bye')\nprint('now')\n"), says("Changed.")],
    "Make one": [calls("write_file", path="new.txt", content="new\n"), says("Made.")],
    "Change again": [calls("write_file", path="hello.py", content="print('again')\n"), says("Asked first.")],
    "Clean up": [calls("terminal", command="rm -rf build"), says("So be it.")],
    "Only look": [calls("write_file", path="hello.py", content="x\n"), says("I would change one line.")],
    "Fail": [calls("terminal", command="ls nowhere"), says("It is not there.")],
}


def reply(request: RecordedRequest) -> Reply:
    """By what was asked last; titles are asked for beside it."""
    body: Any = request.json
    messages = body["messages"]
    if "Give a title" in str(messages[0]["content"]):
        return says("A title")
    place = max(
        number
        for number, message in enumerate(messages)
        if message["role"] == "user" and not str(message["content"]).startswith("[")
    )
    asked = str(messages[place]["content"])
    done: int = sum(message["role"] == "assistant" for message in messages[place:])
    told = [says(f"I was told: {asked[:200]}")]
    fitting = next((replies for words, replies in TURNS.items() if words in asked), told)
    return fitting[min(done, len(fitting) - 1)]


class Window:
    """One tmux window with Hermes in it."""

    def __init__(self, folder: Path, columns: int, background: str, base_url: str) -> None:
        self._socket = str(folder / "tmux")
        self.shots: list[str] = []
        self.columns = columns
        project, home = folder / "project", folder / "home"
        (project / "build").mkdir(parents=True)
        (project / "build" / "out").write_text("x")
        (project / ".git").mkdir()
        (project / "hello.py").write_text("print('hello')\n")
        (project / "AGENTS.md").write_text("Be brief.\n")
        home.mkdir(mode=0o700)
        (home / "config.yaml").write_text(
            f"model: {{provider: custom, default: scripted, base_url: {base_url}}}\nterminal: {{sandbox: auto}}\n"
        )
        environ = {"HERMES_HOME": str(home), "HOME": str(folder), "PYTHONPATH": str(ROOT / "src"), "LANG": "C.UTF-8"}
        environ |= {"PATH": os.environ["PATH"], "COLORFGBG": "0;15" if background == "light" else "15;0"}
        pairs = [word for name, value in environ.items() for word in ("-e", f"{name}={value}")]
        command = f"{sys.executable} -m hermes; echo LEFT; sleep 1000"
        self._run("new-session", "-d", "-x", str(columns), "-y", str(ROWS), "-c", str(project), *pairs, command)

    def type(self, *keys: str) -> None:
        self._run("send-keys", *keys)

    def say(self, text: str) -> None:
        self._run("send-keys", "-l", text)
        self._run("send-keys", "Enter")

    def wait(self, *wanted: str, gone: str = "") -> str:
        """The screen, once all of these are on it (broken over lines or not)."""
        deadline = time.monotonic() + WAIT_S
        while True:
            seen = self._run("capture-pane", "-p").rstrip()
            flat = re.sub(r"\s+", " ", seen)
            if all(re.sub(r"\s+", " ", each) in flat for each in wanted) and (not gone or gone not in flat):
                return seen
            if time.monotonic() > deadline:
                raise SystemExit(f"{self.columns} columns: waited for {wanted!r}, gone {gone!r}; there is:\n{seen}")
            time.sleep(0.05)

    def shot(self, title: str, *wanted: str, gone: str = "") -> None:
        """Wait, and keep the screen."""
        seen = self.wait(*wanted, gone=gone)
        self.shots.append(f"== {len(self.shots) + 1}. {title}\n\n{seen}\n")

    def clear(self) -> None:
        self.type("C-l")

    def close(self) -> None:
        self._run("kill-server")

    def _run(self, *words: str) -> str:
        command = ["tmux", "-S", self._socket, *words]
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=20).stdout


def first_half(window: Window, project: Path) -> None:
    window.shot("the first screen", "Ask something", "confined", "edits on", "scripted")
    window.say("Say hello")
    window.shot("an answer", "This is Hermes.", "written", "context")
    window.clear()
    window.say("Format")
    window.shot("Markdown: headings, numbers with dots, code", "1. first", "2. second", "print('hi')", "written")
    window.clear()
    window.say("Count slowly")
    window.shot("the tail of a running command", "● terminal", "line 3")
    window.shot("the same command when it is done", "✓ terminal", "Six.", "line 6", "written")
    window.type("C-o")
    window.shot("Ctrl-O: the call unfolded", "command: for i in", "line 1", "Ctrl-O folds")
    window.type("C-o")
    window.wait("Six.", gone="Ctrl-O folds")
    window.clear()
    window.say("Count for ever")
    window.wait("● terminal", "n 4")
    window.type("Escape")
    window.shot("stopped: what it had printed stays", "Stopped.", "stopped after", "n 4")
    window.clear()
    window.say("Plan it")
    window.shot(
        "the task list ticks", "☑ Read the file", "▶ Change the greeting", "☐ Run it", "Three steps.", "written"
    )
    window.clear()
    window.say("Change it")
    window.shot("an edit with line numbers", "1 -print('hello')", "2 +print('now')", "changed hello.py")
    window.say("Make one")
    window.shot("a new file is created", "created new.txt")
    assert (project / "hello.py").read_text().startswith("print('bye')")


def second_half(window: Window, project: Path) -> None:
    window.clear()
    window.say("Fail")
    window.shot("a command that fails", "✗ terminal ls nowhere", "exit code 2", "written")
    window.type("BTab")
    window.wait("asks before edits")
    window.say("Change again")
    window.shot("ask: the diff before it is written", "May this be written", "1 +print('again')", "1. yes, once")
    window.type("1")
    window.shot("what was answered stays", "✓ allowed once", "Asked first.", "changed hello.py")
    window.type("BTab")
    window.clear()
    window.say("Only look")
    window.shot("plan: nothing is changed", "plan mode changes nothing", "I would change one line.", "written")
    window.type("BTab")
    window.wait("edits on")
    window.clear()
    window.say("Clean up")
    window.wait("May this run", "rm -rf build", "no, and tell it")
    window.type("Up", "Up", "Down", "Down")
    window.shot("the approval as a list", "> 5. no")
    window.type("Enter")
    window.shot("no is one plain line", "✗ terminal rm -rf build: you said no", "So be it.", "written")
    assert (project / "build" / "out").exists()


def third_part(window: Window, project: Path) -> None:
    window.clear()
    window.say("!echo my own $((40 + 2))")
    window.shot("a command of one's own", "✓ ! echo my own", "my own 42", "told to the model")
    window.say("What did I run?")
    window.wait("I was told: I ran this myself", "my own 42")
    window.clear()
    window.say("/model")
    window.shot("a list to pick the model from", "> scripted (now)", "type to filter")
    window.type("Escape")
    window.wait("edits on", gone="type to filter")
    window.clear()
    window.say("/status")
    window.wait("session", "mode", "edits (edits, ask, plan")
    window.say("/context")
    window.shot("/status and /context", "prompt", "tools", "results")
    window.clear()
    window.say("/rewind")
    window.wait("type to filter", "Change again")
    window._run("send-keys", "-l", "Change it")
    window.wait("1 of")
    window.type("Enter")
    window.wait("hello.py", "/rewind")
    window.shot("/rewind says what it would do", "conversation", "hello.py", "new.txt", "both")
    window.type("Enter")
    window.shot("/rewind took conversation and files back", "Taken back", "hello.py")
    assert (project / "hello.py").read_text() == "print('hello')\n", (project / "hello.py").read_text()
    assert not (project / "new.txt").exists()
    window.type("C-u")
    window.type("C-r")
    window._run("send-keys", "-l", "Format")
    window.shot("Ctrl-R searches what was typed", "search back: Format")
    window.type("C-g")
    window.type("C-u")
    window.clear()
    window.say("?")
    window.shot("? lists the keys", "Shift-Tab", "Ctrl-O", "!command")
    window.type("C-u")
    window.type("C-d")
    window.wait("LEFT")


def main() -> int:
    if shutil.which("tmux") is None:
        sys.stderr.write("tmux is not installed\n")
        return 1
    things: tuple[Callable[[Window, Path], None], ...] = (first_half, second_half, third_part)
    for columns in (110, 60):
        for background in ("dark", "light"):
            with tempfile.TemporaryDirectory() as folder, ServerThread(reply) as server:
                window = Window(Path(folder), columns, background, server.base_url)
                try:
                    for each in things:
                        each(window, Path(folder) / "project")
                finally:
                    window.close()
                if "--keep" in sys.argv:
                    SCREENS.mkdir(parents=True, exist_ok=True)
                    text = "\n".join(window.shots).replace(str(folder), "~")
                    (SCREENS / f"{columns}-{background}.txt").write_text(text)
            sys.stdout.write(f"{columns} columns, {background}: {len(window.shots)} screens\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
