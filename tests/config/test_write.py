"""Changing config.yaml: comments stay, defaults are not written, a bad value changes nothing."""

import stat
from pathlib import Path

import pytest

from hermes.config.load import load_settings
from hermes.config.write import set_key, unset_key
from hermes.errors import ConfigError

COMMENTED = """\
# my settings
model:
  default: one  # the fast one
  provider: 'x'

agent:
  max_turns: 5
"""


def test_setting_keeps_comments_order_and_quotes(home: Path) -> None:
    file = home / "config.yaml"
    file.write_text(COMMENTED)
    set_key(home, "model.default", "two")
    assert file.read_text() == COMMENTED.replace("one  #", "two  #")


def test_only_what_was_set_is_written(home: Path) -> None:
    assert set_key(home, "terminal.timeout", "7") == 7
    assert (home / "config.yaml").read_text() == "terminal:\n  timeout: 7.0\n"
    assert stat.S_IMODE((home / "config.yaml").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("agent.verbose", "yes", True),
        ("toolsets", "a,b", ["a", "b"]),
        ("toolsets", "[a, 'b c']", ["a", "b c"]),
        ("model.context_length", "1000", 1000),
        ("model.context_length", "null", None),
        ("model", "m", "m"),
        ("timezone", "5", "5"),
        ("tool_loop_guardrails.warn_after.exact_failure", "4", 4),
        ("providers.mine.base_url", "http://x", "http://x"),
        ("providers.mine.extra_body.seed", "5", 5),
        ("providers.mine", "{base_url: 'http://y'}", {"base_url": "http://y"}),
        ("quick_commands.gs", "{type: exec, command: git status}", {"type": "exec", "command": "git status"}),
        ("model.api_key", "${KEY}", "${KEY}"),
        ("agent.max_turns", "${TURNS}", "${TURNS}"),
    ],
)
def test_text_becomes_the_type_of_its_key(home: Path, key: str, text: str, value: object) -> None:
    assert set_key(home, key, text) == value
    if "${" not in text:
        found = load_settings(home, environ={}).get(key)
        assert found == value or (isinstance(value, dict) and value.items() <= found.items())


@pytest.mark.parametrize(
    ("key", "text", "told"),
    [
        ("agent.max_turn", "5", "did you mean 'agent.max_turns'"),
        ("agent", "5", "is a section; name one of its keys: max_turns"),
        ("agent.max_turns", "many", "expected a whole number"),
        ("agent.max_turns", "0", "expected a whole number of at least 1"),
        ("agent.max_turns.x", "0", "there is no key"),
        ("approvals.mode", "perhaps", "expected one of manual, smart, off"),
        ("providers.mine", "{base_ulr: x}", "there is no key 'providers.mine.base_ulr'"),
        ("toolsets", "[a", "cannot read"),
    ],
)
def test_a_bad_change_leaves_the_file_as_it_was(home: Path, key: str, text: str, told: str) -> None:
    file = home / "config.yaml"
    file.write_text(COMMENTED)
    with pytest.raises(ConfigError) as caught:
        set_key(home, key, text)
    assert told in str(caught.value)
    assert "draft" not in str(caught.value)
    assert file.read_text() == COMMENTED
    assert sorted(path.name for path in home.iterdir()) == ["config.yaml"]


def test_a_plain_model_makes_room_for_its_other_keys(home: Path) -> None:
    (home / "config.yaml").write_text("model: m\n")
    set_key(home, "model.provider", "p")
    assert (home / "config.yaml").read_text() == "model:\n  default: m\n  provider: p\n"
    set_key(home, "model", "n")
    assert load_settings(home, environ={}).get("model.default") == "n"


def test_unsetting_brings_the_default_back_and_leaves_no_empty_section(home: Path) -> None:
    (home / "config.yaml").write_text(COMMENTED)
    assert unset_key(home, "agent.max_turns") is True
    assert unset_key(home, "agent.max_turns") is False
    assert "agent" not in (home / "config.yaml").read_text()
    assert load_settings(home, environ={}).get("agent.max_turns") == 90


def test_a_broken_file_is_not_overwritten(home: Path) -> None:
    (home / "config.yaml").write_text("model: {a\n")
    with pytest.raises(ConfigError, match="not valid YAML"):
        set_key(home, "agent.max_turns", "5")
    assert (home / "config.yaml").read_text() == "model: {a\n"


def test_a_linked_file_stays_a_link(home: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.yaml"
    real.write_text("model: m\n")
    (home / "config.yaml").symlink_to(real)
    set_key(home, "model", "n")
    assert (home / "config.yaml").is_symlink()
    assert "n" in real.read_text()
