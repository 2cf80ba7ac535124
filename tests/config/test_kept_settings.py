"""Settings are loaded once for all agents of a process, and again as soon as anything that they are made of changes."""

from pathlib import Path

import pytest

from hermes.config import paths
from hermes.config.load import load_settings
from hermes.config.sections import agent


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    paths.config_file(tmp_path).write_text("agent:\n  max_turns: 7\n")
    return tmp_path


def test_they_are_one_object_while_nothing_changes(home: Path) -> None:
    first = load_settings()
    assert load_settings() is first
    assert load_settings().of(agent.Section) is first.of(agent.Section)
    assert load_settings(home) is first


def test_a_changed_file_is_seen(home: Path) -> None:
    before = load_settings().of(agent.Section).max_turns
    paths.config_file(home).write_text("agent:\n  max_turns: 70\n")
    assert (before, load_settings().of(agent.Section).max_turns) == (7, 70)


def test_changed_variables_and_secrets_are_seen(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().lookup("SOME_API_KEY") is None
    paths.env_file(home).write_text("SOME_API_KEY=from-the-file\n")
    assert load_settings().lookup("SOME_API_KEY") == "from-the-file"
    monkeypatch.setenv("SOME_API_KEY", "from-the-environment")
    assert load_settings().lookup("SOME_API_KEY") == "from-the-environment"
    monkeypatch.delenv("SOME_API_KEY")
    assert load_settings().lookup("SOME_API_KEY") == "from-the-file"


def test_flags_and_an_ignored_file_have_settings_of_their_own(home: Path) -> None:
    plain = load_settings()
    assert load_settings(flags={"agent.max_turns": 3}).of(agent.Section).max_turns == 3
    assert load_settings(ignore_file=True).of(agent.Section).max_turns != 7
    assert load_settings().of(agent.Section).max_turns == plain.of(agent.Section).max_turns == 7


def test_what_was_loaded_does_not_follow_later_changes_of_the_environment(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings()
    monkeypatch.setenv("SOME_API_KEY", "later")
    assert settings.lookup("SOME_API_KEY") is None
