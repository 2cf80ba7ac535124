"""A disk that is full or read-only is the person's to mend: one sentence, exit code 1, and never a traceback."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes.surfaces.cli.exit_codes import Exit
from hermes.testing.replies import calls, says
from hermes.testing.server import ServerThread

Run = Callable[..., "subprocess.CompletedProcess[str]"]
FULL = os.environ.get("HERMES_TEST_FULL") == "1"
SIZES = range(4, 800, 12) if FULL else (16, 232, 292, 304, 320)
LONG = calls("terminal", command="head -c 3000000 /dev/zero | tr '\\0' x")
pytestmark = pytest.mark.real


class Disk:
    """A small file system in memory."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self._folder = folder

    def mount(self, size_kb: int) -> None:
        self._mount("-t", "tmpfs", "-o", f"size={size_kb}k,mode=700", "none")
        self.home.mkdir(mode=0o700)

    def fill(self) -> None:
        room = os.statvfs(self._folder)
        (self.home / "filling").write_bytes(bytes(room.f_bavail * room.f_frsize))

    def lock(self) -> None:
        self._mount("-o", "remount,ro")

    def unmount(self) -> None:
        subprocess.run(["umount", "--lazy", self._folder], capture_output=True, check=False)

    def _mount(self, *words: str) -> None:
        try:
            subprocess.run(["mount", *words, self._folder], capture_output=True, check=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            why = getattr(error, "stderr", "") or error
            pytest.skip(f"a small disk needs mount and the right to use it: {why}")


@pytest.fixture
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disk]:
    if sys.platform != "linux":
        pytest.skip("a small disk is a tmpfs, which is Linux's")
    one = Disk(tmp_path_factory.mktemp("disk"))
    yield one
    one.unmount()


def assert_told(done: "subprocess.CompletedProcess[str]", *words: str) -> None:
    assert "Traceback" not in done.stderr
    assert "itself failed" not in done.stderr
    assert done.returncode == Exit.FAILED, done.stderr
    (sentence,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert any(word in sentence for word in words), sentence


def chat(run: Run, disk: Disk, *script: object) -> "subprocess.CompletedProcess[str]":
    with ServerThread(list(script)) as server:  # type: ignore[arg-type]  # replies of the scripted model
        words = ("chat", "-q", "Go.", "--yolo", "--model", "scripted", "--base-url", server.base_url)
        return run(*words, HERMES_HOME=str(disk.home))


@pytest.mark.parametrize("size_kb", SIZES)
def test_a_chat_on_a_full_disk_says_so(run: Run, disk: Disk, size_kb: int) -> None:
    disk.mount(size_kb)
    done = chat(run, disk, LONG, says("Done."))
    if done.returncode != 0 or not FULL:
        assert_told(done, "free some space")


def test_a_command_is_not_lost_with_its_long_output(run: Run, disk: Disk, home: Path) -> None:
    """What it printed is shown by its ends; only the whole finds no room in the temporary folder."""
    disk.mount(1500)
    (home / "config.yaml").write_text("terminal: {sandbox: off}\n")
    with ServerThread([LONG, says("Done.")]) as server:
        words = ("chat", "-q", "Go.", "--yolo", "--model", "scripted", "--base-url", server.base_url)
        done = run(*words, TMPDIR=str(disk.home))
    assert (done.stdout, done.returncode) == ("Done.\n", 0)
    assert "xxxx" in str(server.requests[1].json)


@pytest.mark.parametrize(
    "words",
    [
        ("config", "set", "model.default", "m"),
        ("config", "set", "OPENAI_API_KEY", "sk-1"),
        ("tools", "disable", "web"),
        ("profile", "create", "other"),
        ("profile", "use", "default"),
        ("checkpoints", "prune"),
        ("chat", "-q", "Go.", "--model", "m", "--base-url", "http://127.0.0.1:9"),
    ],
    ids=lambda words: " ".join(words[:3]),
)
def test_a_home_on_a_read_only_disk_is_told(run: Run, disk: Disk, words: tuple[str, ...]) -> None:
    disk.mount(4000)
    disk.lock()
    assert_told(run(*words, HERMES_HOME=str(disk.home)), "read-only")


def test_setting_a_value_on_a_full_disk_keeps_the_old_settings(run: Run, disk: Disk) -> None:
    disk.mount(64)
    config = disk.home / "config.yaml"
    config.write_text("model: {default: old}\n")
    disk.fill()
    assert_told(run("config", "set", "model.default", "new", HERMES_HOME=str(disk.home)), "free some space")
    assert config.read_text() == "model: {default: old}\n"
