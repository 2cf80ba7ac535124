"""The home: from the environment, from a profile, from a binding; made for its owner alone."""

import stat
from pathlib import Path

import pytest

from hermes.config import paths
from hermes.errors import UserError


def test_home_is_under_the_users_home_when_nothing_is_set() -> None:
    assert paths.hermes_home({"HOME": "/home/ann"}) == Path("/home/ann/.hermes")


def test_home_variable_wins_and_may_use_a_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    assert paths.hermes_home({"HERMES_HOME": "~/elsewhere"}) == Path("/home/ann/elsewhere")


def test_profile_is_a_home_below_the_root() -> None:
    environ = {"HERMES_HOME": "/h", "HERMES_PROFILE": "work"}
    assert paths.hermes_home(environ) == Path("/h/profiles/work")
    assert paths.root_home(environ) == Path("/h")


def test_default_profile_is_the_root() -> None:
    assert paths.hermes_home({"HERMES_HOME": "/h", "HERMES_PROFILE": "default"}) == Path("/h")


def test_chosen_profile_is_remembered_and_the_variable_beats_it(tmp_path: Path) -> None:
    paths.sticky_file(tmp_path).write_text("night\n")
    assert paths.hermes_home({"HERMES_HOME": str(tmp_path)}) == tmp_path / "profiles" / "night"
    assert paths.hermes_home({"HERMES_HOME": str(tmp_path), "HERMES_PROFILE": "day"}) == tmp_path / "profiles" / "day"


@pytest.mark.parametrize("name", ["../etc", "A", "-x", "a/b", "x" * 65, "ä"])
def test_names_that_could_leave_the_profiles_folder_are_refused(name: str) -> None:
    with pytest.raises(UserError, match="cannot name a profile"):
        paths.profile_home(Path("/h"), name)


def test_bound_home_wins_inside_its_block_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HERMES_HOME", "/h")
    monkeypatch.delenv("HERMES_PROFILE", raising=False)
    with paths.bound_home(tmp_path):
        assert paths.hermes_home() == tmp_path
        assert paths.hermes_home({"HERMES_HOME": "/given"}) == Path("/given")
    assert paths.hermes_home() == Path("/h")


def test_folders_are_made_for_their_owner_alone(tmp_path: Path) -> None:
    folder = paths.made(tmp_path / "home" / "logs")
    assert [stat.S_IMODE(each.stat().st_mode) for each in (folder, folder.parent)] == [0o700, 0o700]


def test_a_folder_that_cannot_be_made_is_one_sentence_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="set HERMES_HOME"):
        paths.made(tmp_path / "file" / "logs")
