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


SECRET = "kQ7wZ3tP9xB2mV5n"


@pytest.mark.parametrize(
    "text",
    [
        f"model: {{api_key: {SECRET}, base_url: 'http://127.0.0.1:9/v1'}}",
        f"model: {{base_url: 'http://me:{SECRET}@127.0.0.1:9/v1'}}",
        f"providers: {{lab: {{base_url: 'http://127.0.0.1:9', headers: {{x-team: {SECRET}}}}}}}",
        f"custom_providers: [{{name: lab, base_url: 'http://127.0.0.1:9', api_key: {SECRET}}}]",
        f"terminal: {{docker_env: {{THING: {SECRET}}}}}",
        f"web: {{tavily_api_key: {SECRET}}}",
        f"prefill_messages_file: ghp_{SECRET}{SECRET}{SECRET}",
    ],
)
def test_no_second_copy_is_made_of_a_key(home: Path, text: str) -> None:
    """One that an earlier version has left is removed, too."""
    load_settings(home, environ={})
    assert list(paths.cache_dir(home).iterdir()), "nothing was kept, so nothing is tried"
    paths.config_file(home).write_text(f"{text}\nagent: {{max_turns: 7}}\n")
    assert load_settings(home, environ={}).of(agent.Section).max_turns == 7
    kept = [file for file in home.rglob("*") if file.is_file() and SECRET.encode() in file.read_bytes()]
    assert kept == [paths.config_file(home)]
    assert not list(paths.cache_dir(home).glob("config*"))


def test_a_reference_to_a_key_is_kept(home: Path) -> None:
    paths.config_file(home).write_text("model: {api_key: '${SOME_API_KEY}'}\n")
    load_settings(home, environ={"SOME_API_KEY": SECRET})
    (kept,) = paths.cache_dir(home).glob("config*")
    assert SECRET not in kept.read_text()
