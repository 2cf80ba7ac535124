"""`hermes skills`: what a person sees, and that nothing from elsewhere counts before they said so."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.surfaces.cli.exit_codes import Exit
from tests.extensions.skills.attacks import DANGEROUS
from tests.extensions.skills.shelf import put, skill_text

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    return put(
        tmp_path / "elsewhere" / "deploy", skill_text("deploy", "Deploy the app.", "Run `git push --force`.")
    ).parent


def names(run: Run) -> list[str]:
    return [one["place"] for one in json.loads(run("skills", "list", "--json").stdout)]


def test_an_empty_home_names_what_could_be_chosen(run: Run, home: Path) -> None:
    said = run("skills")
    assert "not chosen: bisect-failing-test, csv-data" in said.stderr
    assert run("skills", "install", "csv-data").stdout == f"{home / 'skills' / 'csv-data'}\n"
    assert names(run) == ["csv-data"]
    assert "not chosen: bisect-failing-test, make-release" in run("skills", "list").stderr
    (home / "skills" / "csv-data" / "SKILL.md").write_text(skill_text("csv-data", body="My own way."))
    assert "+My own way." in run("skills", "diff", "csv-data").stdout
    run("skills", "reset", "csv-data", "--yes")
    assert run("skills", "diff", "csv-data").stdout == "nothing was edited\n"


def test_a_skill_is_shown_then_taken(run: Run, home: Path, elsewhere: Path) -> None:
    seen = json.loads(run("skills", "inspect", str(elsewhere), "--json").stdout)
    assert "git history" in seen["findings"][0]
    shown = run("skills", "install", str(elsewhere))
    assert (shown.returncode, names(run)) == (Exit.FAILED, [])
    assert "notice: SKILL.md:6: git history or work discarded: git push --force" in shown.stdout
    assert "say --yes" in shown.stderr
    assert run("skills", "install", str(elsewhere), "--yes", "--category", "ops").returncode == Exit.ANSWERED
    assert names(run) == ["ops/deploy"]
    assert "git push --force" in run("skills", "view", "deploy").stdout
    assert "source: " in run("skills", "inspect", "deploy").stdout
    (elsewhere / "SKILL.md").write_text(skill_text("deploy", "Deploy the app.", "Run `make deploy`."))
    newer = run("skills", "update")
    assert (newer.returncode, "+Run `make deploy`." in newer.stdout) == (Exit.FAILED, True)
    assert "git push --force" in run("skills", "view", "deploy").stdout
    assert run("skills", "update", "deploy", "--yes").returncode == Exit.ANSWERED
    assert "make deploy" in run("skills", "view", "deploy").stdout
    assert run("skills", "update").stdout == "ops/deploy: nothing has changed\n"
    assert run("skills", "uninstall", "deploy", "--yes").returncode == Exit.ANSWERED
    assert names(run) == []
    assert not (home / "skills" / "ops").exists()


def test_dangers_are_refused_also_with_yes(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "bad"
    folder.mkdir()
    (folder / "SKILL.md").write_bytes(DANGEROUS["curl to sh"]["SKILL.md"])
    refused = run("skills", "install", str(folder), "--yes")
    assert (refused.returncode, names(run)) == (Exit.FAILED, [])
    assert "danger: SKILL.md:11: pipe remote content to shell" in refused.stdout
    assert run("skills", "install", str(folder), "--yes", "--force").returncode == Exit.ANSWERED
    assert run("skills", "check").returncode == Exit.FAILED


def test_a_changed_one_is_told_and_trusted(run: Run, home: Path, elsewhere: Path) -> None:
    run("skills", "install", str(elsewhere), "--yes")
    (home / "skills" / "deploy" / "SKILL.md").write_text(skill_text("deploy", body="Changed."))
    checked = run("skills", "check", "deploy", "--offline")
    assert (checked.returncode, "was changed since a person took it" in checked.stdout) == (Exit.FAILED, True)
    assert "was changed since a person took it" in run("doctor").stdout
    assert run("skills", "trust", "deploy", "--yes").returncode == Exit.ANSWERED
    assert run("skills", "check", "deploy").returncode == Exit.ANSWERED


def test_bad_input_is_one_sentence(run: Run, home: Path, tmp_path: Path) -> None:
    put(home / "skills" / "broken", "---\nname: [\n---\n")
    with (put(home / "skills" / "huge")).open("wb") as file:
        file.truncate(50_000_000)
    for kind in ("a", "b"):
        put(home / "skills" / kind / "twice", skill_text("twice"))
    listed = run("skills", "list")
    assert (listed.returncode, names(run)) == (0, ["broken", "huge", "a/twice", "b/twice"])
    assert "no valid YAML" in listed.stdout
    for words in (
        ("view", "none"),
        ("view", "twice"),
        ("view", "a/twice", "../../../x"),
        ("install", str(tmp_path / "gone")),
        ("install", "ext::sh"),
        ("update", "broken"),
        ("trust", "broken"),
        ("diff", "broken"),
        ("review", "3"),
    ):
        said = run("skills", *words)
        assert (said.returncode, said.stderr.count("\n")) == (Exit.FAILED, 1), (words, said.stderr)
    found = run("doctor").stdout
    assert "2 skills are called 'twice'" in found
    assert "the skill broken is left out" in found


def test_what_is_used_and_what_never(run: Run, home: Path) -> None:
    put(home / "skills" / "one", skill_text("one"))
    put(home / "skills" / "two", skill_text("two"))
    (home / "skills" / ".usage.jsonl").write_text('{"name":"two","loads":3,"failures":1,"at":1000000.0}\n')
    rows = json.loads(run("skills", "stats", "--json").stdout)
    assert [(row["name"], row["loads"], row["failures"]) for row in rows] == [("two", 3, 1), ("one", 0, 0)]
    assert "2 skills, 1 never loaded" in run("skills", "stats").stderr
    assert json.loads(run("skills", "search", "does", "a", "thing", "one", "--json").stdout)[0]["name"] == "one"
