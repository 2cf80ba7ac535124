"""The .env file: read as shells write it, changed line by line, private."""

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.config.dotenv import _quoted, _unquoted, is_private, read_env, set_env, unset_env
from hermes.errors import ConfigError


def test_the_usual_spellings_are_read(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text(
        '# keys\nA=1\nexport B = two words # note\nC=\'#no note\'\nD="a\\nb\\"c"\n\nE=\nF=sk-1#2\n',
        encoding="utf-8-sig",
    )
    assert read_env(file) == {"A": "1", "B": "two words", "C": "#no note", "D": 'a\nb"c', "E": "", "F": "sk-1#2"}


def test_a_line_that_says_nothing_is_named(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=1\nsk-123\n")
    with pytest.raises(ConfigError, match=r"line 2: expected NAME=value"):
        read_env(tmp_path / ".env")


def test_setting_keeps_the_other_lines_and_makes_the_file_private(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("# mine\nA=1\nB=2\nA=3\n")
    file.chmod(0o644)
    assert not is_private(file)
    set_env(file, "A", "x y")
    set_env(file, "C", "new")
    assert file.read_text() == '# mine\nA="x y"\nB=2\nC=new\n'
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert is_private(file)


def test_unsetting_says_whether_it_was_there(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    assert unset_env(file, "A") is False
    file.write_text("A=1\n")
    assert unset_env(file, "A") is True
    assert read_env(file) == {}


@given(st.text(alphabet=st.characters(blacklist_categories=["Cs"], blacklist_characters="\x00")))
def test_whatever_is_written_is_read_back(value: str) -> None:
    assert _unquoted(_quoted(value)) == value
