"""Skills on disk: found, read, and refused in one sentence."""

from pathlib import Path
from typing import Any

import pytest

from hermes.config.load import load_settings
from hermes.errors import UserError
from hermes.extensions.skills import MAX_CHARS, Skill, Skills, read

HEAD = """---
name: cooking
description: Cook a dish.
platforms: [linux, macos]
required_environment_variables:
  - OVEN_TOKEN
  - {name: STOVE_TOKEN, prompt: where}
  - "no variable"
prerequisites: {env_vars: [PAN]}
---
# Cooking

Run ${HERMES_SKILL_DIR}/scripts/cook in ${HERMES_SESSION_ID}.
"""


def put(folder: Path, text: str = "Do it well.\n") -> Path:
    folder.mkdir(parents=True)
    file = folder / "SKILL.md"
    file.write_text(text)
    return file


def book(home: Path, **section: Any) -> Skills:
    return Skills(load_settings(home, environ={}, flags={f"skills.{name}": value for name, value in section.items()}))


def test_a_skill_is_what_its_file_says(tmp_path: Path) -> None:
    file = put(tmp_path / "skills" / "kitchen" / "cooking", HEAD)
    skill = book(tmp_path).load("kitchen/cooking")
    assert skill == Skill(
        name="cooking",
        description="Cook a dish.",
        file=file,
        body="# Cooking\n\nRun ${HERMES_SKILL_DIR}/scripts/cook in ${HERMES_SESSION_ID}.\n",
        platforms=("linux", "macos"),
        variables=("OVEN_TOKEN", "STOVE_TOKEN", "PAN"),
    )
    told = book(tmp_path).text([skill], "s-1")
    assert f"Run {file.parent}/scripts/cook in s-1." in told
    assert "${HERMES_SKILL_DIR}" in book(tmp_path, template_vars=False).text([skill], "s-1")


def test_folders_are_looked_through_in_order_and_not_too_deep(tmp_path: Path) -> None:
    own = put(tmp_path / "skills" / "both")
    more = put(tmp_path / "more" / "a" / "b" / "deep")
    put(tmp_path / "more" / "both")
    put(tmp_path / "more" / "a" / "b" / "c" / "too-deep")
    put(tmp_path / "skills" / ".archive" / "old")
    put(tmp_path / "skills" / "off")
    found = book(tmp_path, external_dirs=[str(tmp_path / "more"), "/nonexistent"], disabled=["off"])
    assert found.files() == {"both": own, "deep": more}
    with pytest.raises(UserError, match="'off' is switched off"):
        found.load("off")
    other = book(tmp_path, platform_disabled={"cli": ["off"]})
    assert "off" not in other.files()


@pytest.mark.parametrize(
    ("name", "told"),
    [("cookin", "did you mean 'cooking'"), ("zzz", "there are: cooking"), ("", "there are: cooking")],
)
def test_a_name_that_is_none_is_told_with_the_next_step(tmp_path: Path, name: str, told: str) -> None:
    put(tmp_path / "skills" / "cooking")
    with pytest.raises(UserError, match=told):
        book(tmp_path).load(name)


def test_a_home_without_skills_says_where_one_goes(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"there is no skill 'x'; put one into .*skills/x/SKILL.md"):
        book(tmp_path).load("x")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("---\nname: [\n---\nx", "no valid YAML"),
        ("---\nname: x\n", "keys and values between two lines"),
        ("---\n- a\n---\nx", "keys and values between two lines"),
        ("x" * (MAX_CHARS + 1), "are the most"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, text: str, told: str) -> None:
    file = put(tmp_path / "x", text)
    with pytest.raises(UserError, match=told) as caught:
        read(file)
    assert str(file) in str(caught.value)


def test_a_skill_for_another_system_is_not_loaded(tmp_path: Path) -> None:
    put(tmp_path / "skills" / "x", "---\nplatforms: windows\n---\nx")
    with pytest.raises(UserError, match="is for windows, and this is"):
        book(tmp_path).load("x")
