"""Skills on disk: found, read, hidden where they do not belong, and refused in one sentence."""

import os
import sys
from pathlib import Path

import pytest

from hermes.extensions.skills.skill_book import NoSkill, Offered, names_of
from hermes.extensions.skills.skill_file import MAX_CHARS, SkillHead, Variable
from tests.extensions.skills.shelf import book, put, skill_text

HEAD = """---
name: cooking
description: Cook a dish.
platforms: [linux, macos]
required_environment_variables:
  - OVEN_TOKEN
  - {name: STOVE_TOKEN, prompt: where, help: ask the cook, optional: true}
  - "no variable"
prerequisites: {env_vars: [PAN], commands: [bash, no-such-program]}
metadata: {hermes: {tags: [food, 3], requires_tools: [terminal], fallback_for_toolsets: [web]}}
---
# Cooking

Run ${HERMES_SKILL_DIR}/scripts/cook in ${HERMES_SESSION_ID}.
"""


def test_a_skill_is_what_its_file_says(tmp_path: Path) -> None:
    file = put(tmp_path / "skills" / "kitchen" / "cooking", HEAD)
    found = book(tmp_path)
    skill = found.find("kitchen/cooking")
    assert skill == SkillHead(
        name="cooking",
        description="Cook a dish.",
        file=str(file),
        root=str(tmp_path / "skills"),
        category="kitchen",
        platforms=("linux", "macos"),
        tags=("food", "3"),
        requires_tools=("terminal",),
        fallback_for_toolsets=("web",),
        variables=(
            Variable(name="OVEN_TOKEN"),
            Variable(name="STOVE_TOKEN", prompt="where", help="ask the cook", optional=True),
            Variable(name="PAN"),
        ),
        commands=("bash", "no-such-program"),
        setup_help="ask the cook",
    )
    assert found.find("cooking") == found.find("kitchen:cooking") == skill
    assert f"Run {file.parent}/scripts/cook in s-1." in found.text(skill, "s-1")
    assert "${HERMES_SESSION_ID}" in found.text(skill)
    assert "${HERMES_SKILL_DIR}" in book(tmp_path, template_vars=False).text(skill, "s-1")


def test_folders_are_looked_through_in_order_and_not_too_deep(tmp_path: Path) -> None:
    own = put(tmp_path / "skills" / "both")
    more = put(tmp_path / "more" / "a" / "b" / "deep")
    put(tmp_path / "more" / "both")
    put(tmp_path / "more" / "a" / "b" / "c" / "too-deep")
    put(tmp_path / "skills" / ".archive" / "old")
    put(tmp_path / "skills" / "off")
    put(tmp_path / "skills" / "both" / "references" / "inner")
    found = book(tmp_path, external_dirs=[str(tmp_path / "more"), "/nonexistent"], disabled=["off"])
    assert {head.name: head.file for head in found.usable()} == {"both": str(own), "deep": str(more)}
    with pytest.raises(NoSkill, match="'off' is disabled"):
        found.find("off")
    other = book(tmp_path, platform="telegram", platform_disabled={"telegram": ["off"]})
    assert "off" not in names_of(other.usable())
    assert "off" in names_of(book(tmp_path, platform_disabled={"telegram": ["off"]}).usable())


def test_a_session_sees_the_folder_as_it_is(tmp_path: Path) -> None:
    found = book(tmp_path)
    assert found.all() == []
    file = put(tmp_path / "skills" / "one", skill_text("one", "First."))
    assert [head.description for head in found.all()] == ["First."]
    file.write_text(skill_text("one", "Second, longer."))
    assert [head.description for head in book(tmp_path).all()] == ["Second, longer."]
    (file.parent).rename(tmp_path / "skills" / "two")
    assert [head.place for head in book(tmp_path).all()] == ["two"]


def test_a_damaged_cache_costs_time_only(tmp_path: Path) -> None:
    put(tmp_path / "skills" / "one", skill_text("one"))
    before = book(tmp_path).all()
    for damage in (b"", b"{", b'{"format": 99, "known": {}}', os.urandom(50)):
        (tmp_path / "cache" / "skills.json").write_bytes(damage)
        assert book(tmp_path).all() == before


@pytest.mark.parametrize(
    ("name", "told"),
    [("cookin", "did you mean 'cooking'"), ("zzz", "there are: cooking"), ("", "there are: cooking")],
)
def test_a_name_that_is_none_is_told_with_the_next_step(tmp_path: Path, name: str, told: str) -> None:
    put(tmp_path / "skills" / "cooking")
    with pytest.raises(NoSkill, match=told) as caught:
        book(tmp_path).find(name)
    assert caught.value.details["available_skills"] == ["cooking"]


def test_a_home_without_skills_says_where_one_goes(tmp_path: Path) -> None:
    with pytest.raises(NoSkill, match=r"there is no skill 'x'; put one into .*skills/x/SKILL.md"):
        book(tmp_path).find("x")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("---\nname: [\n---\nx", "no valid YAML"),
        ("---\nname: x\n", "keys and values between two lines"),
        ("---\n- a\n---\nx", "keys and values between two lines"),
        ("---\na: " + "[" * 5000 + "\n---\nx", "no valid YAML"),
        ("---\na: " + "x" * 30_000 + "\n---\nx", "more than 20000 characters"),
        ("x" * (MAX_CHARS + 1), "are the most"),
    ],
)
def test_a_broken_file_hides_nothing_else_and_is_named(tmp_path: Path, text: str, told: str) -> None:
    put(tmp_path / "skills" / "x", text)
    put(tmp_path / "skills" / "y")
    found = book(tmp_path)
    assert [head.name for head in found.usable()] == ["y"]
    with pytest.raises(NoSkill, match=told):
        found.find("x")


def test_a_file_of_fifty_megabytes_is_not_read(tmp_path: Path) -> None:
    file = put(tmp_path / "skills" / "huge")
    with file.open("wb") as out:
        out.truncate(50_000_000)
    put(tmp_path / "skills" / "y")
    found = book(tmp_path)
    assert [(head.name, bool(head.trouble)) for head in found.all()] == [("huge", True), ("y", False)]
    with pytest.raises(NoSkill, match="has 50000 kB; 100000 characters are the most"):
        found.find("huge")


@pytest.mark.parametrize(
    "head",
    [
        "name: &a [*a]\ndescription: *a\ntags: *a",
        "name: {a: b}\ndescription: [x]\nplatforms: {x: y}\nrequired_environment_variables: {a: [b]}",
        "name: true\ndescription: 2026-11-18\nmetadata: []\nprerequisites: 3\nsetup: x",
        "name: '../../etc'\ndescription: \"a\\u200bb\\u202ec\\n  d\"",
        "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b]\ntags: [*c,*c,*c,*c]",
    ],
)
def test_a_head_in_odd_shapes_is_read_as_far_as_it_makes_sense(tmp_path: Path, head: str) -> None:
    put(tmp_path / "skills" / "odd", f"---\n{head}\n---\nWords.\n")
    skill = book(tmp_path).find("odd")
    assert (skill.name, skill.trouble) == ("odd", "")
    assert skill.description in ("", "Words.", "abc d", "2026-11-18")


def test_a_skill_for_another_system_is_not_loaded(tmp_path: Path) -> None:
    put(tmp_path / "skills" / "x", "---\nplatforms: windows\n---\nx")
    with pytest.raises(NoSkill, match="is for windows, and this is") as caught:
        book(tmp_path).find("x")
    assert caught.value.details == {"readiness_status": "unsupported"}


def test_two_skills_of_one_name_are_both_there_and_neither_is_guessed(tmp_path: Path) -> None:
    files = [put(tmp_path / "skills" / kind / "deploy", skill_text("deploy", kind)) for kind in ("a", "b")]
    found = book(tmp_path)
    with pytest.raises(NoSkill, match="2 skills are called 'deploy'") as caught:
        found.find("deploy")
    assert caught.value.details["matches"] == [str(file) for file in files]
    assert found.find("b/deploy").description == "b"
    assert names_of(found.usable()) == {}


def test_conditions_hide_a_skill_from_sessions_it_is_not_for(tmp_path: Path) -> None:
    own = {"hermes": {"requires_tools": ["terminal"]}}
    spare = {"hermes": {"fallback_for_toolsets": ["web"]}}
    put(tmp_path / "skills" / "shell", skill_text("shell", metadata=own))
    put(tmp_path / "skills" / "no-web", skill_text("no-web", metadata=spare))
    found = book(tmp_path)

    def shown(tools: set[str], toolsets: set[str]) -> list[str]:
        return [head.name for head in found.usable(Offered(frozenset(tools), frozenset(toolsets)))]

    assert shown({"terminal"}, {"terminal"}) == ["no-web", "shell"]
    assert shown({"terminal", "web_search"}, {"terminal", "web"}) == ["shell"]
    assert shown(set(), set()) == ["no-web"]


@pytest.mark.skipif(sys.platform == "win32", reason="links and pipes")
def test_a_file_that_is_none_is_not_opened(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("---\nname: x\n---\nprivate")
    for name in ("link", "pipe"):
        (tmp_path / "skills" / name).mkdir(parents=True)
    (tmp_path / "skills" / "link" / "SKILL.md").symlink_to(secret)
    os.mkfifo(tmp_path / "skills" / "pipe" / "SKILL.md")
    troubles = {head.name: head.trouble for head in book(tmp_path).all()}
    assert "leads out of its folder" in troubles["link"]
    assert "no regular file" in troubles["pipe"]
