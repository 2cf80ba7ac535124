"""`--worktree`: a branch and a folder of its own, removed when nothing is in it that is nowhere else."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.surfaces.cli.exit_codes import Exit
from hermes.testing.replies import calls, says
from hermes.testing.server import ServerThread
from hermes.tools.worktrees import include

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
    return subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """The folder the tests run in, as a repository with one commit."""
    git(tmp_path, "init", "--quiet", "-b", "main")
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / ".gitignore").write_text("home/\n.env\nmodules/\n")
    git(tmp_path, "add", "a.txt", ".gitignore")
    git(tmp_path, "commit", "--quiet", "-m", "begin")
    return tmp_path


def chat(run: Run, *script: object, words: tuple[str, ...] = ()) -> "subprocess.CompletedProcess[str]":
    with ServerThread(list(script)) as server:  # type: ignore[arg-type]  # replies of the scripted model
        return run("chat", "-q", "Go.", "--worktree", "--model", "scripted", "--base-url", server.base_url, *words)


def left(repo: Path) -> list[Path]:
    folder = repo / ".worktrees"
    return sorted(folder.iterdir()) if folder.exists() else []


def test_one_without_news_is_removed_with_its_branch(run: Run, repo: Path) -> None:
    done = chat(run, calls("terminal", command="pwd; git branch --show-current"), says("Nothing to do."))
    assert (done.stdout, done.returncode) == ("Nothing to do.\n", 0)
    assert "had nothing new and is removed" in done.stderr
    assert left(repo) == []
    assert git(repo, "branch", "--format=%(refname:short)").split() == ["main"]
    assert git(repo, "status", "--porcelain") == ""
    assert git(repo, "worktree", "list").count("\n") == 1


def test_a_quiet_run_only_tells_of_one_that_is_kept(run: Run, repo: Path) -> None:
    assert chat(run, says("Nothing."), words=("-Q",)).stderr == ""
    kept = chat(run, calls("write_file", path="b.txt", content="two\n"), says("Written."), words=("-Q",))
    assert "is kept (1 changed files)" in kept.stderr


def test_changed_files_keep_it_and_the_main_folder_stays_as_it_was(run: Run, repo: Path) -> None:
    done = chat(run, calls("write_file", path="b.txt", content="two\n"), says("Written."))
    [kept] = left(repo)
    assert f"is kept (1 changed files): {kept}, branch hermes/{kept.name}" in done.stderr
    assert (kept / "b.txt").read_text() == "two\n"
    assert not (repo / "b.txt").exists()


def test_commits_that_are_nowhere_else_keep_it_until_they_are_merged(run: Run, repo: Path) -> None:
    commit = "echo two > a.txt && git -c user.name=A -c user.email=a@b.c commit -qam change && git log --format=%s -1"
    done = chat(run, calls("terminal", command=commit), says("Committed."))
    [kept] = left(repo)
    assert "is kept (1 commits that are nowhere else)" in done.stderr
    git(repo, "merge", "--quiet", f"hermes/{kept.name}")
    chat(run, says("Hello."))
    assert left(repo) == []
    assert (repo / "a.txt").read_text() == "two\n"


def test_the_session_works_in_the_same_subfolder(repo: Path, environ: dict[str, str]) -> None:
    (repo / "below").mkdir()
    with ServerThread([calls("terminal", command="pwd"), says("There.")]) as server:
        words = ["chat", "-q", "Go.", "-w", "--model", "scripted", "--base-url", server.base_url]
        done = subprocess.run(
            [sys.executable, "-m", "hermes.surfaces.cli.main", *words],
            cwd=repo / "below",
            env=environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    assert done.returncode == 0
    told = str(server.requests[1].json)
    assert "/.worktrees/hermes-" in told
    assert "/below" in told


def test_what_the_worktree_needs_is_brought_along(run: Run, repo: Path) -> None:
    (repo / ".env").write_text("A=1\n")
    (repo / "modules").mkdir()
    (repo / "modules" / "m.txt").write_text("m\n")
    (repo / ".worktreeinclude").write_text("# not in git\n.env\nmodules/\n../outside\ngone\n")
    (repo.parent / "outside").write_text("secret\n")
    look = "cat .env modules/m.txt; test -L modules && echo linked"
    done = chat(run, calls("terminal", command=look), says("Seen."))
    assert "'../outside' leads out of the repository" in done.stderr
    assert "there is no 'gone'" in done.stderr
    assert left(repo) == []
    assert (repo / "modules" / "m.txt").exists()


def test_a_changed_copy_keeps_it(tmp_path: Path) -> None:
    root, tree = tmp_path / "root", tmp_path / "tree"
    for folder in (root, tree):
        folder.mkdir()
    (root / ".env").write_text("A=1\n")
    (root / include.NAME).write_text(".env\n")
    assert list(include.bring(root, tree)) == []
    assert include.changed(root, tree) == []
    (tree / ".env").write_text("A=2\n")
    assert include.changed(root, tree) == [".env"]
    include.take_away(root, tree)
    assert (tree / ".env").read_text() == "A=2\n"


def test_one_left_by_a_run_that_is_gone_is_removed(run: Run, repo: Path) -> None:
    path = repo / ".worktrees" / "hermes-0123abcd"
    git(repo, "worktree", "add", "--quiet", "-b", f"hermes/{path.name}", str(path))
    gone = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True).stdout.strip()
    git(repo, "worktree", "lock", "--reason", f"hermes {gone}", str(path))
    mine = repo / ".worktrees" / "hermes-89abcdef"
    git(repo, "worktree", "add", "--quiet", "-b", f"hermes/{mine.name}", str(mine))
    git(repo, "worktree", "lock", "--reason", "my own work", str(mine))
    chat(run, says("Hello."))
    assert left(repo) == [mine]


def test_a_run_that_is_stopped_leaves_nothing_but_its_work(repo: Path, environ: dict[str, str]) -> None:
    with ServerThread([calls("terminal", command="touch made; sleep 60"), says("Never.")]) as server:
        words = ["chat", "-q", "Go.", "-w", "--json", "--model", "scripted", "--base-url", server.base_url]
        process = subprocess.Popen(
            [sys.executable, "-m", "hermes.surfaces.cli.main", *words],
            cwd=repo,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        try:
            while "call_started" not in process.stdout.readline():
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=60)
        finally:
            process.kill()
            process.wait()
    assert process.returncode == Exit.CANCELLED
    assert bool(left(repo)) == ("is kept" in told)  # `touch` may or may not have come to its turn
    assert "locked" not in git(repo, "worktree", "list", "--porcelain")


@pytest.mark.parametrize(
    "settings",
    [
        "[core]\n\tfsmonitor = {run}\n",
        "[core]\n\thooksPath = {hooks}\n",
        '[filter "x"]\n\tsmudge = {run}\n\tclean = {run}\n',
        '[includeIf "onbranch:hermes/**"]\n\tpath = {aside}\n',
    ],
    ids=["monitor", "hooks", "filter", "filter of a branch"],
)
def test_nothing_that_the_repositorys_settings_name_is_run(run: Run, repo: Path, settings: str) -> None:
    """A sandboxed command can write them, and the git of a worktree runs outside."""
    trace, planted = repo / "home" / "trace", repo / "home" / "planted"
    planted.write_text(f"#!/bin/sh\necho ran >> {trace}\ncat\n")
    planted.chmod(0o755)
    (repo / "home" / "post-checkout").symlink_to(planted)
    (repo / ".gitattributes").write_text("a.txt filter=x\n")
    git(repo, "add", ".gitattributes")
    git(repo, "commit", "--quiet", "-m", "attributes")
    aside = repo / ".git" / "aside"
    aside.write_text(f'[filter "x"]\n\tsmudge = {planted}\n\tclean = {planted}\n')
    config = repo / ".git" / "config"
    config.write_text(config.read_text() + settings.format(run=planted, hooks=planted.parent, aside=aside))
    done = chat(run, calls("write_file", path="a.txt", content="two\n"), says("Done."))
    assert (done.returncode, "is kept (1 changed files)" in done.stderr) == (0, True)
    assert not trace.exists()


def test_outside_a_repository_it_is_refused(run: Run) -> None:
    done = run("chat", "-q", "Go.", "--worktree", "--model", "m", "--base-url", "http://127.0.0.1:9")
    assert (done.returncode, done.stdout) == (Exit.FAILED, "")
    assert "--worktree needs a git repository" in done.stderr
