"""`hermes update`: a clone is fast-forwarded, and every way it can go wrong leaves one that runs."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.house.checkouts import Checkout
from tests.surfaces.cli.conftest import Run

WHO = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", folder, *WHO, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


class Clone:
    """A clone of a small upstream whose launcher is the real one, and whose packages are wheels of this machine."""

    def __init__(self, folder: Path, run: Run) -> None:
        self.checkout = Checkout(folder / "upstream")
        self.upstream = self.checkout.root
        (self.upstream / ".gitignore").write_text(".venv*\n")
        (self.upstream / "CHANGELOG.md").write_text("- The beginning.\n")
        git(self.upstream, "init", "-q", "-b", "main")
        self.commit("begin")
        self.root = folder / "clone"
        git(folder, "clone", "-q", str(self.upstream), str(self.root))
        self._run = run

    def commit(self, subject: str) -> str:
        git(self.upstream, "add", "-A")
        git(self.upstream, "commit", "-q", "-m", subject)
        return git(self.upstream, "rev-parse", "HEAD")

    @property
    def head(self) -> str:
        return git(self.root, "rev-parse", "HEAD")

    def hermes(self, *words: str) -> "subprocess.CompletedProcess[str]":
        more = self.checkout.variables(HERMES_LAUNCHER=str(self.root / "hermes"), PYTHONPATH="")
        return self._run(*words, **{name: value for name, value in more.items() if name != "HOME"})


@pytest.fixture
def clone(tmp_path: Path, run: Run) -> Clone:
    return Clone(tmp_path, run)


def test_an_update_says_what_changed_makes_the_environment_and_can_be_taken_back(clone: Clone) -> None:
    before = clone.head
    assert "is the newest" in clone.hermes("update").stdout
    (clone.upstream / "CHANGELOG.md").write_text("- The beginning.\n- Answers are kinder.\n")
    (clone.upstream / "constraints.txt").write_text("greeter==2.0\nwhisperer==1.0\n")
    after = clone.commit("be kinder")

    checked = clone.hermes("update", "--check")
    assert (checked.returncode, clone.head) == (0, before), checked.stderr
    assert checked.stdout.splitlines()[0] == "- Answers are kinder."
    assert f"{clone.root}/hermes update" in checked.stdout

    done = clone.hermes("update")
    assert (done.returncode, clone.head) == (0, after), done.stderr
    assert "- Answers are kinder." in done.stdout
    assert done.stdout.splitlines()[-1].startswith("2.0 ")  # what the new version says of itself
    assert "making a Python environment" in done.stderr

    back = clone.hermes("update", "--back", "--json")
    assert (back.returncode, clone.head) == (0, before), back.stderr
    assert json.loads(back.stdout)["version"].startswith("1.0 ")
    assert clone.hermes("update", "--back").returncode == 1


def test_a_version_that_does_not_start_is_taken_back(clone: Clone) -> None:
    before = clone.head
    (clone.upstream / "src/hermes/surfaces/cli/main.py").write_text("raise SystemExit('broken')\n")
    clone.commit("break it")
    failed = clone.hermes("update")
    assert (failed.returncode, clone.head) == (1, before)
    assert "broken" in failed.stderr
    assert "the version before is back" in failed.stderr


def test_packages_that_cannot_be_had_leave_the_version_before(clone: Clone) -> None:
    assert clone.hermes("update").returncode == 0
    before = clone.head
    (clone.upstream / "constraints.txt").write_text("greeter==9.9\n")
    clone.commit("ask for too much")
    failed = clone.hermes("update")
    assert (failed.returncode, clone.head) == (1, before)
    started = subprocess.run(
        [clone.root / "hermes", "x"], env=clone.checkout.variables(), capture_output=True, text=True, timeout=240
    )
    assert started.stdout.startswith("1.0 ")


def test_what_was_changed_by_hand_is_never_touched(clone: Clone) -> None:
    clone.upstream.joinpath("new").write_text("x")
    clone.commit("add a file")
    (clone.root / "constraints.txt").write_text("greeter==2.0\n")
    before = clone.head

    refused = clone.hermes("update")
    assert (refused.returncode, clone.head) == (1, before)
    assert "constraints.txt" in refused.stderr
    assert (clone.root / "constraints.txt").read_text() == "greeter==2.0\n"

    git(clone.root, "checkout", "-q", "constraints.txt")
    (clone.root / "new").write_text("mine")
    refused = clone.hermes("update")
    assert (refused.returncode, (clone.root / "new").read_text()) == (1, "mine")


def test_a_branch_with_commits_of_its_own_is_not_merged(clone: Clone) -> None:
    clone.upstream.joinpath("new").write_text("x")
    clone.commit("add a file")
    (clone.root / "mine").write_text("x")
    git(clone.root, "add", "-A")
    git(clone.root, "commit", "-q", "-m", "mine")
    before = clone.head
    refused = clone.hermes("update")
    assert (refused.returncode, clone.head) == (1, before)
    assert "cannot be fast-forwarded" in refused.stderr


def test_hooks_of_the_clone_do_not_run(clone: Clone, tmp_path: Path) -> None:
    hook = clone.root / ".git/hooks/post-merge"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\n")
    hook.chmod(0o755)
    clone.upstream.joinpath("new").write_text("x")
    clone.commit("add a file")
    assert clone.hermes("update").returncode == 0
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("key", ["filter.x.smudge", "filter.x.process", "remote.origin.uploadpack"])
def test_programs_that_settings_of_the_clone_name_do_not_run(clone: Clone, tmp_path: Path, key: str) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\nexit 1\n")
    program.chmod(0o755)
    git(clone.root, "config", key, str(program))
    (clone.upstream / ".gitattributes").write_text("new filter=x\n")
    (clone.upstream / "new").write_text("x")
    after = clone.commit("add a file")
    done = clone.hermes("update")
    assert not (tmp_path / "ran").exists()
    assert (done.returncode, clone.head) == (0, after), done.stderr


@pytest.mark.parametrize("state", ["no clone", "no branch", "no upstream", "gone upstream"])
def test_what_cannot_be_updated_says_what_to_do(clone: Clone, run: Run, tmp_path: Path, state: str) -> None:
    if state == "no clone":
        clone.root = tmp_path / "plain"
        clone.root.mkdir()
    elif state == "no branch":
        git(clone.root, "checkout", "-q", "--detach")
    elif state == "no upstream":
        git(clone.root, "branch", "--unset-upstream")
    else:
        clone.upstream.rename(tmp_path / "moved")
    told = clone.hermes("update")
    assert (told.returncode, told.stdout) == (1, "")
    expected = {
        "no clone": "is no git clone",
        "no branch": "switch main",
        "no upstream": "follows no other",
        "gone upstream": "pull --ff-only",
    }
    assert expected[state] in told.stderr


def test_one_that_pip_installed_is_told_the_command(run: Run) -> None:
    told = run("update")
    assert (told.returncode, "-m pip install --upgrade" in told.stdout) == (0, True)
