"""Protected files are put back where nothing but a comparison holds them."""

from pathlib import Path

import pytest

from hermes.confinement.policy import Confinement, PathRule
from hermes.confinement.protected_files import ProtectedFiles


@pytest.fixture
def project(tmp_path: Path) -> Path:
    hooks = tmp_path / "project" / ".git" / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "pre-commit").write_text("echo mine\n")
    (hooks.parent / "HEAD").write_text("ref: refs/heads/main\n")
    elsewhere = tmp_path / "elsewhere" / "hooks"
    elsewhere.mkdir(parents=True)
    (elsewhere / "post-checkout").write_text("echo theirs\n")
    return tmp_path / "project"


def protected(project: Path) -> ProtectedFiles:
    rules = (
        PathRule(str(project), "write", "workspace"),
        PathRule(str(project / ".git" / "hooks"), "read", "protected", "git runs hooks by itself"),
    )
    return ProtectedFiles(Confinement(level="files", workspace=str(project), temp="/tmp", rules=rules))


def as_it_was(project: Path) -> bool:
    git = project / ".git"
    return (
        not git.is_symlink()
        and (git / "hooks" / "pre-commit").read_text() == "echo mine\n"
        and (git / "HEAD").read_text() == "ref: refs/heads/main\n"
        and sorted(path.name for path in (project.parent / "elsewhere" / "hooks").iterdir()) == ["post-checkout"]
    )


def test_a_folder_that_was_replaced_by_a_link_comes_back_whole(project: Path) -> None:
    files = protected(project)
    (project / ".git").rename(project / ".g")
    (project / ".git").symlink_to(project.parent / "elsewhere")

    files.put_back()

    assert as_it_was(project)
    assert files.put_back() == []


def test_a_folder_that_was_replaced_by_a_file_comes_back_and_the_file_is_kept(project: Path) -> None:
    files = protected(project)
    (project / ".git").rename(project / ".g")
    (project / ".git").write_text("gitdir: ../elsewhere\n")

    files.put_back()

    assert as_it_was(project)
    assert (project / ".git.replaced").read_text() == "gitdir: ../elsewhere\n"


def test_a_folder_that_was_deleted_is_made_again_with_what_is_protected(project: Path) -> None:
    files = protected(project)
    (project / ".git").rename(project.parent / "gone")

    told = files.put_back()

    assert (project / ".git" / "hooks" / "pre-commit").read_text() == "echo mine\n"
    assert [sentence.endswith("write_file asks the user about it") for sentence in told] == [True]


def test_a_folder_that_was_copied_keeps_the_copy(project: Path) -> None:
    files = protected(project)
    (project / ".git").rename(project / ".g")
    (project / ".git" / "hooks").mkdir(parents=True)
    (project / ".git" / "hooks" / "pre-push").write_text("echo evil\n")
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")

    files.put_back()

    assert as_it_was(project)
    assert [path.name for path in (project / ".git" / "hooks").iterdir()] == ["pre-commit"]
