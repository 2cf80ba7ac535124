"""acpx, a client that others wrote: sessions, permissions, cancel and load through the real command."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from hermes.config.write import set_key
from hermes.testing.replies import Reply, calls, says
from hermes.testing.server import ServerThread
from tests.surfaces.cli.interactive.terminal import answering

pytestmark = pytest.mark.real
AGENT = f"{sys.executable} -P -m hermes.surfaces.acp.main"
LIMIT_S = 90
TURNS: dict[str, list[Reply]] = {
    "Write": [calls("write_file", path="note.txt", content="new words\n"), says("Written.")],
    "Sleep": [calls("terminal", command="sleep 600"), says("Never.")],
    "List": [calls("terminal", command="echo hi"), says("It says hi.")],
}


class Acpx:
    """The client at work in one folder. It keeps a process beside its commands for as long as `--ttl` says."""

    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        found = shutil.which("acpx", path=os.environ.get("HERMES_TEST_ACP_CLIENT", ""))
        if found is None or shutil.which("node") is None:
            pytest.skip("acpx is not installed; scripts/install-acp-client installs it where npm is")
        self._words = [found, "--agent", AGENT, "--format", "json", "--ttl", "60"]
        self.folder = folder
        self._environ = environ

    def start(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [*self._words, *words],
            cwd=self.folder,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def run(self, *words: str, code: int = 0) -> list[dict[str, Any]]:
        """What it prints: every frame of both sides, or an object of its own. Its code 5 is a permission not given."""
        with self.start(*words) as process:
            out, _ = process.communicate(timeout=LIMIT_S)
        assert process.returncode == code, out
        return [json.loads(line) for line in out.splitlines()]

    def left_alone(self) -> None:
        """End what it keeps beside its commands: the next command starts the agent anew."""
        for lock in Path(self._environ["HOME"], ".acpx", "queues").glob("*.lock"):
            with contextlib.suppress(FileNotFoundError, psutil.NoSuchProcess):  # it is on its way out already
                beside = psutil.Process(json.loads(lock.read_text())["pid"])
                beside.terminate()
                beside.wait(LIMIT_S)
            lock.unlink(missing_ok=True)  # a stale one makes its next command give up


@pytest.fixture
def acpx(tmp_path: Path) -> Iterator[Acpx]:
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir(mode=0o700)
    project.mkdir()
    (project / "note.txt").write_text("old words\n")
    # Its sockets lie below HOME, and the path of a socket has at most 107 bytes.
    with ServerThread(answering(TURNS)) as server, tempfile.TemporaryDirectory(prefix="acpx-") as short:
        set_key(home, "model.default", "scripted")
        set_key(home, "model.base_url", server.base_url)
        keep = {name: os.environ[name] for name in ("PATH", "LANG", "HERMES_CHECK_RUN") if name in os.environ}
        paths = {"HOME": short, "HERMES_HOME": home, "PYTHONPATH": Path(__file__).parents[3] / "src"}
        client = Acpx(project, keep | {name: str(path) for name, path in paths.items()})
        yield client
        client.left_alone()


def methods(frames: list[dict[str, Any]]) -> list[str]:
    return [frame["method"] for frame in frames if "method" in frame]


def updates(frames: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    found = (frame["params"]["update"] for frame in frames if frame.get("method") == "session/update")
    return [update for update in found if update["sessionUpdate"] == kind]


@pytest.mark.parametrize(("answer", "left"), [("--approve-all", "new words\n"), ("--deny-all", "old words\n")])
def test_an_edit_is_made_or_not_as_the_client_says(acpx: Acpx, answer: str, left: str) -> None:
    frames = acpx.run(answer, "exec", "Write it", code=0 if answer == "--approve-all" else 5)
    assert all(frame["jsonrpc"] == "2.0" for frame in frames)
    (asked,) = [frame["params"] for frame in frames if frame.get("method") == "session/request_permission"]
    assert asked["toolCall"]["content"][0]["newText"] == "new words\n"
    assert [update["title"] for update in updates(frames, "tool_call")] == ["write: note.txt"]
    ended = updates(frames, "tool_call_update")[-1]["status"]
    assert ended == ("completed" if answer == "--approve-all" else "failed")
    assert frames[-1]["result"]["stopReason"] == "end_turn"
    assert (acpx.folder / "note.txt").read_text() == left


def test_a_session_is_loaded_by_another_process_of_the_client_and_takes_a_cancel(acpx: Acpx) -> None:
    (made,) = acpx.run("sessions", "new")
    assert made["created"]
    first = acpx.run("prompt", "List them")
    assert "session/load" in methods(first)
    assert "session/new" not in methods(first)  # what was made is found, although nothing was said in it yet
    assert first[-1]["result"]["stopReason"] == "end_turn"
    acpx.left_alone()

    with acpx.start("prompt", "Sleep now") as asleep:
        assert asleep.stdout is not None
        frames: list[dict[str, Any]] = []
        for line in asleep.stdout:
            frames.append(json.loads(line))
            if updates(frames[-1:], "tool_call") and "sleep" in line:
                break
        else:
            pytest.fail(f"nothing sleeps: {frames[-3:]}")
        assert acpx.run("cancel")
        frames += [json.loads(line) for line in asleep.stdout]
        assert asleep.wait(LIMIT_S) == 0, frames[-3:]
    assert frames[-1]["result"]["stopReason"] == "cancelled"
    assert "session/load" in methods(frames)
    last = acpx.run("prompt", "List again")
    assert last[-1]["result"]["stopReason"] == "end_turn"
