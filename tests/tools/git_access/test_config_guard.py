"""Git's settings after a command: what starts nothing stays, anything else goes, and it is told."""

import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.confinement.policy import Confinement, PathRule
from hermes.tools.git_access.config_guard import GitConfigGuard
from hermes.tools.git_access.harmless_settings import is_harmless
from hermes.tools.git_access.session_git import GitPerson
from hermes.tools.supervisor.supervisor import ProcessSupervisor

PATH = os.environ["PATH"]


class Watched:
    """A repository, and the guard that was made before the agent's first command."""

    def __init__(self, work: Path, supervisor: ProcessSupervisor) -> None:
        self.work = work
        work.mkdir()
        self.git("init", "-q", "-b", "main")
        self.git("config", "core.editor", "vim")
        self.config = work / ".git" / "config"
        self.confinement = Confinement(
            level="full", workspace=str(work), rules=(PathRule(str(self.config), "read", "git-config", "git runs it"),)
        )
        person = GitPerson(supervisor, {"PATH": PATH, "HOME": str(work.parent)}, work)
        self.guard = GitConfigGuard(person, self.confinement)

    def git(self, *words: str, cwd: Path | None = None) -> str:
        env = {"PATH": PATH, "HOME": str(self.work.parent), "GIT_CONFIG_GLOBAL": "/dev/null"}
        done = subprocess.run(
            ["git", *words], cwd=cwd or self.work, env=env, check=True, capture_output=True, text=True
        )
        return done.stdout

    async def settle(self) -> list[str]:
        return list(await self.guard(self.confinement))


@pytest.fixture
async def watched(tmp_path: Path) -> AsyncIterator[Watched]:
    supervisor = ProcessSupervisor()
    yield Watched(tmp_path.resolve(strict=True) / "work", supervisor)  # noqa: ASYNC240
    await supervisor.close()


async def test_everyday_settings_are_taken_over(watched: Watched) -> None:
    assert await watched.settle() == []
    watched.git("remote", "add", "origin", "git@example.org:a/b.git")
    watched.git("config", "branch.main.remote", "origin")
    watched.git("config", "user.email", "a@b.c")
    watched.git("config", "--unset", "user.email")
    before = watched.config.read_bytes()
    assert await watched.settle() == []
    assert watched.config.read_bytes() == before


STARTING = [
    ("core.fsmonitor", "touch /x"),
    ("core.hooksPath", "h"),
    ("core.sshCommand", "x"),
    ("core.pager", "x"),
    ("core.worktree", "/"),
    ("alias.st", "!x"),
    ("include.path", "../evil"),
    ("includeIf.gitdir:/.path", "../evil"),
    ("filter.x.clean", "x"),
    ("diff.external", "x"),
    ("diff.x.textconv", "x"),
    ("credential.helper", "!x"),
    ("gpg.program", "x"),
    ("remote.origin.uploadpack", "x"),
    ("remote.origin.vcs", "x"),
    ("remote.origin.proxy", "x"),
    ("remote.origin.url", "ext::sh -c x"),
    ("submodule.x.update", "!x"),
    ("branch.main.remote", "--upload-pack=x"),
    ("url.ext::sh.insteadOf", "git"),
    ("protocol.ext.allow", "always"),
    ("merge.x.driver", "x"),
    ("sequence.editor", "x"),
    ("http.proxy", "http://evil"),
    ("core.editor", "evil"),
]


async def test_what_git_would_start_is_dropped_and_told_beside_what_stays(watched: Watched) -> None:
    watched.git("config", "user.name", "me")
    for key, value in STARTING:
        watched.git("config", key, value)
    told = await watched.settle()
    assert len(told) == 1
    assert "was dropped" in told[0]
    left = watched.git("config", "--local", "--list").lower()
    assert "user.name=me" in left
    assert "core.editor=vim" in left
    assert [key for key, value in STARTING if f"{key}={value}".lower() in left] == []
    assert await watched.settle() == []


async def test_a_setting_of_the_persons_cannot_be_taken_away(watched: Watched) -> None:
    watched.git("config", "--unset", "core.editor")
    assert "core.editor" in (await watched.settle())[0]
    assert watched.git("config", "core.editor") == "vim\n"


async def test_links_pipes_and_rubbish_are_undone(watched: Watched, tmp_path: Path) -> None:
    before = watched.config.read_bytes()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("[core]\n\tfsmonitor = x\n")
    watched.config.unlink()
    watched.config.symlink_to(elsewhere)
    assert len(await watched.settle()) == 1 or watched.config.is_symlink() is False
    watched.config.unlink()
    os.mkfifo(watched.config)
    assert len(await watched.settle()) == 1
    watched.config.write_text("[[[")
    assert "cannot read" in (await watched.settle())[0]
    assert watched.config.read_bytes() == before
    assert elsewhere.read_text() == "[core]\n\tfsmonitor = x\n"


async def test_a_folder_that_became_a_link_is_told_and_not_written_through(watched: Watched, tmp_path: Path) -> None:
    away = tmp_path / "away"
    away.mkdir()
    (away / "config").write_text("[core]\n\tfsmonitor = x\n")
    (watched.work / ".git").rename(watched.work / "g")
    (watched.work / ".git").symlink_to(away)
    assert "could not be undone" in (await watched.settle())[0]
    assert (away / "config").read_text() == "[core]\n\tfsmonitor = x\n"


async def test_repositories_made_since_are_looked_at(watched: Watched) -> None:
    watched.git("init", "-q", "sub")
    watched.git("config", "core.fsmonitor", "x", cwd=watched.work / "sub")
    watched.git("config", "user.name", "me", cwd=watched.work / "sub")
    assert "core.fsmonitor" in (await watched.settle())[0]
    assert "fsmonitor" not in watched.git("config", "--list", cwd=watched.work / "sub")
    assert watched.git("config", "user.name", cwd=watched.work / "sub") == "me\n"


def test_the_list_has_nothing_that_starts() -> None:
    for key in (
        "core.fsmonitor",
        "diff.external",
        "remote.x.receivepack",
        "tag.gpgsign",
        "merge.tool",
        "log.showsignature",
    ):
        assert not is_harmless(key, ["x"])
    assert is_harmless("branch.a.b.merge", ["refs/heads/x"])
