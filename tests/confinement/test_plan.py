"""Planning: what the person named becomes writable, what the workspace says does not."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from hermes.confinement.outside import STARTS, outside
from hermes.confinement.plan import Enforcement, PlanRequest, own_root, plan
from hermes.confinement.policy import Confinement

FULL = Enforcement("full", "/usr/bin/bwrap")
FILES = Enforcement("files")  # where the machine's temporary folder, in which these tests live, is no exception


def planned(workspace: Path, found: Enforcement = FILES, **more: Any) -> Confinement:
    home = workspace.parent / "home"
    home.mkdir(exist_ok=True)
    request = PlanRequest(workspace=str(workspace), home=str(home), hermes_home=str(home / ".hermes"))
    return plan(structs.replace(request, **more), found)


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    subprocess.run(["git", *who, *words], cwd=folder, check=True)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    folder.mkdir()
    return folder


def test_the_workspace_may_be_written_and_the_home_folder_only_read(workspace: Path) -> None:
    confined = planned(workspace)

    assert confined.may_write(f"{workspace}/x.py")
    assert not confined.may_write(f"{workspace.parent}/home/.bashrc")
    assert confined.may_see(f"{workspace.parent}/home/.bashrc")


def test_keys_and_hermes_own_files_are_hidden_and_skills_are_not(workspace: Path) -> None:
    confined = planned(workspace)
    home = workspace.parent / "home"

    assert not confined.may_see(f"{home}/.ssh/id_rsa")
    assert not confined.may_see(f"{home}/.hermes/.env")
    assert confined.may_see(f"{home}/.hermes/skills/x/SKILL.md")
    assert not confined.may_write(f"{home}/.hermes/skills/x/SKILL.md")


def test_a_link_in_the_workspace_makes_nothing_writable(workspace: Path) -> None:
    precious = workspace.parent / "precious"
    precious.mkdir()
    (precious / "pyvenv.cfg").touch()
    (workspace / ".venv").symlink_to(precious)

    confined = planned(workspace, environ={"VIRTUAL_ENV": f"{workspace}/.venv"}, writable=(f"{workspace}/.venv",))

    assert own_root(f"{workspace}/.venv", str(workspace)) is None
    assert not confined.may_write(f"{precious}/x")


def test_a_git_file_that_names_a_foreign_folder_makes_nothing_writable(workspace: Path) -> None:
    precious = workspace.parent / "precious"
    (precious / "objects").mkdir(parents=True)
    (precious / "HEAD").write_text("ref: refs/heads/main\n")
    (workspace / ".git").write_text(f"gitdir: {precious}\n")

    assert not planned(workspace).may_write(f"{precious}/x")


def test_the_git_folders_of_a_worktree_are_workspace_without_hooks_and_settings(workspace: Path) -> None:
    git(workspace, "init", "-q")
    git(workspace, "commit", "-q", "--allow-empty", "-m", "first")
    tree = workspace.parent / "tree"
    git(workspace, "worktree", "add", "-q", str(tree))

    confined = planned(tree)

    assert confined.may_write(f"{workspace}/.git/objects/x")
    assert not confined.may_write(f"{workspace}/.git/hooks/pre-commit")
    assert not confined.may_write(f"{workspace}/.git/config")
    assert not confined.may_write(f"{workspace}/main.py")


def test_nested_repositories_and_set_hook_folders_are_protected(workspace: Path) -> None:
    git(workspace, "init", "-q")
    git(workspace, "config", "core.hooksPath", "tools/hooks")
    (workspace / "vendor").mkdir()
    git(workspace / "vendor", "init", "-q")

    confined = planned(workspace)

    for name in (".git/config", "vendor/.git/config", "vendor/.git/hooks/x", "tools/hooks/pre-commit", ".hermes/x"):
        assert not confined.may_write(f"{workspace}/{name}"), name
    assert confined.may_write(f"{workspace}/vendor/.git/index")


def test_the_safe_root_confines_every_write_but_temporary_ones(workspace: Path) -> None:
    inner = workspace / "out"
    inner.mkdir()

    confined = planned(workspace, FULL, safe_roots=(str(inner),), writable=("/srv",))

    assert confined.may_write(f"{inner}/x")
    assert not confined.may_write(f"{workspace}/x")
    assert not confined.may_write("/srv/x")
    assert confined.may_write("/tmp/x")


def test_ready_made_policies(workspace: Path) -> None:
    assert not planned(workspace, policy="read-only").may_write(f"{workspace}/x")
    opened = planned(workspace, policy="open")
    assert opened.may_write("/opt/x")
    assert not opened.may_see(f"{workspace.parent}/home/.ssh/id_rsa")


def test_without_namespaces_the_machines_temporary_folder_stays_shut(workspace: Path) -> None:
    temp = workspace.parent / "own-temp"
    temp.mkdir()
    confined = planned(workspace, FILES, temp=str(temp))

    assert not confined.may_write("/tmp/x")
    assert confined.may_write(f"{temp}/x")
    assert confined.env["TMPDIR"] == str(temp)


def test_the_socket_that_a_variable_names_is_out_of_sight_unless_granted(workspace: Path) -> None:
    environ = {"SSH_AUTH_SOCK": f"{workspace.parent}/agent.sock"}

    assert not planned(workspace, environ=environ).may_see(environ["SSH_AUTH_SOCK"])
    granted = planned(workspace, environ=environ, sockets=(environ["SSH_AUTH_SOCK"],))
    assert granted.may_see(environ["SSH_AUTH_SOCK"])


def test_a_start_outside_is_one_of_the_table() -> None:
    assert outside("ssh").name == "ssh"
    assert all(STARTS.values())
    with pytest.raises(ValueError, match="not in the table"):
        outside("whatever")


def test_interpreters_of_a_virtualenv_are_protected_and_its_packages_are_not(workspace: Path) -> None:
    bin_folder = workspace / ".venv" / "bin"
    bin_folder.mkdir(parents=True)
    (workspace / ".venv" / "pyvenv.cfg").touch()
    os.symlink("/usr/bin/python3", bin_folder / "python")

    confined = planned(workspace)

    assert not confined.may_write(f"{bin_folder}/python")
    assert confined.may_write(f"{bin_folder}/ruff")
