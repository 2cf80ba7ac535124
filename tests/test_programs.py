"""The runtime's own programs are never those that the agent's commands can put somewhere."""

import os
from pathlib import Path

import pytest

from hermes.programs import find_program, split_path


def plant(folder: Path, name: str = "git") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return plant(tmp_path / "usr" / "bin")


@pytest.fixture(autouse=True)
def start_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "start"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("where", ["work/bin", "work/node_modules/.bin", "venv/bin", "start/bin", "home/.bun/bin"])
def test_one_where_commands_can_write_is_passed_over(tmp_path: Path, good: Path, where: str) -> None:
    planted = plant(tmp_path / where)
    environ = {
        "PATH": f"{planted.parent}:{good.parent}",
        "VIRTUAL_ENV": str(tmp_path / "venv"),
        "HOME": str(tmp_path / "home"),
    }
    assert find_program("git", environ, tmp_path / "work") == str(good)
    assert split_path(environ, tmp_path / "work") == (str(good.parent), str(planted.parent))


@pytest.mark.parametrize("spelled", ["usr/bin/../../work/bin", "linked/bin", ".", "", "bin"])
def test_no_other_spelling_of_such_a_folder_helps(tmp_path: Path, good: Path, start_folder: Path, spelled: str) -> None:
    plant(tmp_path / "work" / "bin")
    plant(start_folder)
    plant(start_folder / "bin")
    (tmp_path / "linked").symlink_to(tmp_path / "work")
    folder = str(tmp_path / spelled) if "/" in spelled else spelled
    environ = {"PATH": f"{folder}:{good.parent}"}
    assert find_program("git", environ, tmp_path / "work") == str(good)


def test_a_workspace_reached_by_a_link_is_known_by_both_names(tmp_path: Path, good: Path) -> None:
    planted = plant(tmp_path / "work" / "bin")
    (tmp_path / "linked").symlink_to(tmp_path / "work")
    assert find_program("git", {"PATH": f"{planted.parent}:{good.parent}"}, tmp_path / "linked") == str(good)


def test_a_link_that_leads_into_the_workspace_is_passed_over(tmp_path: Path, good: Path) -> None:
    folder = tmp_path / "local" / "bin"
    folder.mkdir(parents=True)
    (folder / "git").symlink_to(plant(tmp_path / "work" / "bin"))
    assert find_program("git", {"PATH": f"{folder}:{good.parent}"}, tmp_path / "work") == str(good)
    assert find_program("git", {"PATH": str(folder)}, tmp_path / "work") is None


def test_working_at_the_root_of_the_machine_leaves_its_programs(good: Path) -> None:
    assert find_program("git", {"PATH": str(good.parent)}, "/") == str(good)


def test_an_environment_without_a_path_gets_the_systems() -> None:
    assert split_path({}) == (os.defpath, "")
