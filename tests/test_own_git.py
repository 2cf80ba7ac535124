"""Git that the runtime starts by itself runs nothing that a repository's own settings name."""

import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.own_git import OwnGit
from hermes.tools.supervisor.supervisor import ProcessSupervisor

ASKED = (
    ("diff",),
    ("diff", "--cached"),
    ("log", "-p", "-2"),
    ("status", "--porcelain", "--untracked-files=all"),
    ("reset", "--hard", "--quiet"),
    ("worktree", "add", "--quiet", "-b", "side", "../side", "HEAD"),
    ("worktree", "remove", "../side"),
    ("branch", "-D", "side"),
)
EVERYTHING = """
[core]
    fsmonitor = {run}
    hooksPath = hooks
    pager = {run}
    editor = {run}
    sshCommand = {run}
    askPass = {run}
[filter "x"]
    clean = {run}
    smudge = {run}
    required = true
[filter "y.z"]
    process = {run}
[diff]
    external = {run}
    submodule = diff
[diff "x"]
    command = {run}
    textconv = {run}
[log]
    showSignature = true
[gpg]
    program = {run}
[pager]
    diff = {run}
    log = {run}
[alias]
    diff = !{run}
    status = !{run}
[submodule]
    recurse = true
[submodule "sub"]
    ignore = none
    update = !{run}
"""


def was_run(trace: Path) -> str:
    return trace.read_text() if trace.exists() else ""


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "protocol.file.allow=always"]
    return subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "trace"


@pytest.fixture
def run(tmp_path: Path, trace: Path) -> str:
    """A program that leaves a trace of every start and passes its input on."""
    program = tmp_path / "planted"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {trace}\ncat\n')
    program.chmod(0o755)
    return str(program)


@pytest.fixture
def repo(tmp_path: Path, run: str) -> Path:
    """A repository with a submodule, changes, and settings in which every program is the planted one."""
    folder, module = tmp_path / "repo", tmp_path / "module"
    for each in (module, folder):
        each.mkdir()
        git(each, "init", "--quiet", "-b", "main")
        (each / "a.txt").write_text("one\n")
        (each / "b.txt").write_text("one\n")
        (each / ".gitattributes").write_text("a.txt filter=x diff=x\nb.txt filter=y.z diff=x\n")
        git(each, "add", ".")
        git(each, "commit", "--quiet", "-m", "begin")
    git(folder, "submodule", "--quiet", "add", str(module), "sub")
    git(folder, "commit", "--quiet", "-m", "with a submodule")
    for name in ("post-checkout", "post-index-change", "reference-transaction"):
        hook = folder / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.symlink_to(run)
    for config in (folder / ".git" / "config", folder / ".git" / "modules" / "sub" / "config"):
        config.write_text(config.read_text() + EVERYTHING.format(run=run))
    for name in ("a.txt", "b.txt", "sub/a.txt"):
        (folder / name).write_text("two!\n")
    return folder


@pytest.fixture
async def own_git(repo: Path) -> AsyncIterator[OwnGit]:
    supervisor = ProcessSupervisor()
    yield OwnGit(supervisor, dict(os.environ), repo)
    await supervisor.close()


async def test_no_setting_of_the_repository_runs_a_program(own_git: OwnGit, repo: Path, trace: Path) -> None:
    said = {words: await own_git.ask(*words, purpose="a test") for words in ASKED}
    assert was_run(trace) == ""
    # All were answered, but for one: git itself does not remove a worktree that has submodules.
    assert {words[:2] for words, answer in said.items() if answer.code} <= {("worktree", "remove"), ("branch", "-D")}
    assert b"+two!" in said[ASKED[0]].output
    assert b" M a.txt" in said[ASKED[3]].output
    assert (repo / "a.txt").read_text() == "one\n"


def test_the_planted_settings_do_run_for_a_plain_git(repo: Path, trace: Path) -> None:
    subprocess.run(["git", "status"], cwd=repo, capture_output=True, check=False)
    assert was_run(trace)


async def test_settings_that_hold_in_a_worktree_only_run_nothing_either(
    own_git: OwnGit, repo: Path, run: str, trace: Path
) -> None:
    (repo / ".git" / "config").write_text('[includeIf "onbranch:side"]\n    path = aside\n')
    (repo / ".git" / "aside").write_text(f'[filter "x"]\n    clean = {run}\n    smudge = {run}\n')
    side = repo.parent / "side"
    # The first commit: git refuses to remove a worktree with submodules before it looks at its files.
    added = await own_git.ask("worktree", "add", "--no-checkout", "-b", "side", str(side), "HEAD~", purpose="a test")
    assert added.code == 0, added.complaint
    there = OwnGit(own_git.supervisor, own_git.environ, side)
    for words in (("reset", "--hard"), ("status", "--porcelain")):
        assert (await there.ask(*words, purpose="a test")).code == 0
    os.utime(side / "a.txt", (0, 0))  # git looks into it again, and so would its filter
    removed = await own_git.ask("worktree", "remove", str(side), purpose="a test", beside=side)
    assert (removed.code, was_run(trace)) == (0, "")


async def test_a_filter_that_cannot_be_named_is_refused(own_git: OwnGit, repo: Path, run: str, trace: Path) -> None:
    (repo / ".git" / "config").write_text(f'[filter "a=b"]\n    clean = {run}\n')
    answer = await own_git.ask("diff", purpose="a test")
    assert (answer.code, "rename it" in answer.complaint) == (1, True)
    assert was_run(trace) == ""


async def test_what_is_too_long_is_cut(own_git: OwnGit, repo: Path) -> None:
    (repo / "a.txt").write_text("three\n" * 1_000_000)
    assert len((await own_git.ask("diff", purpose="a test", most_bytes=1000)).output) == 1000


async def test_a_git_of_the_workspace_is_not_the_one(own_git: OwnGit, repo: Path, run: str, trace: Path) -> None:
    (repo / "bin").mkdir()
    (repo / "bin" / "git").symlink_to(run)
    environ = {**own_git.environ, "PATH": f"{repo}/bin:{own_git.environ['PATH']}"}
    assert (await OwnGit(own_git.supervisor, environ, repo).ask("status", purpose="a test")).code == 0
    assert was_run(trace) == ""
