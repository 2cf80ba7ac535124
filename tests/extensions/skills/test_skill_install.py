"""Skills from elsewhere: shown before they count, pinned, and out of use when somebody changed them."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from hermes.config.load import load_settings
from hermes.errors import UserError
from hermes.extensions.skills.lock_file import LockFile
from hermes.extensions.skills.usage_log import UsageLog
from hermes.host.skill_care import SkillCare
from hermes.runtime.setup.process import ProcessParts
from tests.extensions.skills.attacks import DANGEROUS
from tests.extensions.skills.shelf import desk, put, skill_text

Result = TypeVar("Result")
_WHO = {f"GIT_{who}_{what}": "x@y.example" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def care_of(home: Path) -> SkillCare:
    return SkillCare(load_settings(home, environ=dict(os.environ)))


def run(home: Path, work: Callable[[SkillCare], Awaitable[Result]]) -> Result:
    async def main() -> Result:
        parts = ProcessParts()
        try:
            return await work(SkillCare(load_settings(home, environ=dict(os.environ)), parts.supervisor))
        finally:
            await parts.close()

    return asyncio.run(main())


def git(folder: Path, *words: str) -> str:
    environ = {**_WHO, "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(folder)}
    ran = subprocess.run(["git", *words], cwd=folder, env=environ, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    put(
        folder / "skills" / "deploy", skill_text("deploy", "Deploy the app."), scripts__go_dot_sh="#!/bin/sh\nmake go\n"
    )
    git(folder, "init", "-q", "-b", "main", ".")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "one")
    return folder


def test_a_skill_from_git_is_pinned_and_followed_by_diff(tmp_path: Path, repository: Path) -> None:
    address = f"file://{repository}"
    offer = run(tmp_path, lambda care: care.offer(address, "", ""))
    assert not (tmp_path / "skills").exists(), "an offer writes nothing"
    assert (offer.place, offer.findings, sorted(offer.files)) == ("deploy", (), ["SKILL.md", "scripts/go.sh"])
    assert offer.entry.commit == git(repository, "rev-parse", "HEAD")
    care_of(tmp_path).installer.take(offer)
    lock = json.loads((tmp_path / "skills" / ".lock.json").read_text())["skills"]["deploy"]
    assert (lock["source"], lock["commit"], lock["path"]) == (address, offer.entry.commit, "skills/deploy")
    assert os.access(tmp_path / "skills" / "deploy" / "scripts" / "go.sh", os.X_OK)
    assert desk(tmp_path).view("deploy")["success"]
    head = care_of(tmp_path).head("deploy")
    assert run(tmp_path, lambda care: care.newer(head)).is_same
    (repository / "skills" / "deploy" / "SKILL.md").write_text(skill_text("deploy", "Deploy the app.", "Do it twice."))
    git(repository, "commit", "-qam", "two")
    assert run(tmp_path, lambda care: care.check(head)).newer == git(repository, "rev-parse", "HEAD")
    newer = run(tmp_path, lambda care: care.newer(head))
    assert "-Do it well.\n+Do it twice." in newer.diff
    assert "Do it well." in desk(tmp_path).view("deploy")["content"], "it counts once a person says so"
    care_of(tmp_path).installer.take(newer)
    assert "Do it twice." in desk(tmp_path).view("deploy")["content"]


@pytest.mark.parametrize("name", ["curl to sh", "hide", "zero width", "python posts", "own rules"])
def test_a_trojaned_update_is_shown_and_does_not_count(tmp_path: Path, repository: Path, name: str) -> None:
    care_of(tmp_path).installer.take(run(tmp_path, lambda care: care.offer(f"file://{repository}", "", "")))
    for file, data in DANGEROUS[name].items():
        target = repository / "skills" / "deploy" / file
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(data)
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "trojan")
    head = care_of(tmp_path).head("deploy")
    offer = run(tmp_path, lambda care: care.newer(head))
    assert offer.is_refused
    assert offer.diff
    assert "Do it well." in desk(tmp_path).view("deploy")["content"]


def test_an_installed_skill_that_somebody_changed_is_out_of_use_until_trusted(tmp_path: Path, repository: Path) -> None:
    care_of(tmp_path).installer.take(run(tmp_path, lambda care: care.offer(f"file://{repository}", "", "")))
    script = tmp_path / "skills" / "deploy" / "scripts" / "go.sh"
    script.write_text("#!/bin/sh\nmake other\n")
    seen = desk(tmp_path).view("deploy")
    assert "was changed since a person took it" in seen["error"]
    assert "[Not loaded: " in desk(tmp_path).slash_words("/deploy now")
    state = run(tmp_path, lambda care: care.check(care.head("deploy"), is_offline=True))
    assert state.changed
    care = care_of(tmp_path)
    care.installer.trust(care.head("deploy"))
    assert desk(tmp_path).view("deploy")["success"]


@pytest.mark.parametrize(
    ("ref", "path", "told"),
    [
        ("no-such-branch", "", "cannot be taken"),
        ("--upload-pack=touch x", "", "no name of a branch"),
        ("", "../..", "inside the repository"),
        ("", "docs", "no SKILL.md in"),
    ],
)
def test_what_cannot_be_had_is_told_in_one_sentence(
    tmp_path: Path, repository: Path, ref: str, path: str, told: str
) -> None:
    with pytest.raises(UserError, match=told):
        run(tmp_path, lambda care: care.offer(f"file://{repository}", ref, path))
    assert not (tmp_path / "skills").exists()


def test_of_several_skills_in_a_repository_one_is_named(tmp_path: Path, repository: Path) -> None:
    put(repository / "skills" / "second", skill_text("second"))
    (repository / "link").symlink_to("/etc")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "two")
    with pytest.raises(UserError, match="--path: skills/deploy, skills/second"):
        run(tmp_path, lambda care: care.offer(f"file://{repository}", "", ""))
    offer = run(tmp_path, lambda care: care.offer(f"file://{repository}", "main", "skills/second", category="ops"))
    assert offer.place == "ops/second"


def test_a_link_in_a_repository_is_refused(tmp_path: Path, repository: Path) -> None:
    (repository / "skills" / "deploy" / "references").symlink_to("/etc")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "link")
    with pytest.raises(UserError, match="'references' is a link"):
        run(tmp_path, lambda care: care.offer(f"file://{repository}", "", ""))


def test_nothing_of_a_repository_runs_by_taking_it(tmp_path: Path, repository: Path) -> None:
    proof = tmp_path / "ran"
    (repository / ".gitattributes").write_text("* filter=evil\n")
    for hook in ("post-checkout", "post-merge", "reference-transaction"):
        (repository / ".git" / "hooks").mkdir(exist_ok=True)
        (repository / ".git" / "hooks" / hook).write_text(f"#!/bin/sh\ntouch {proof}\n")
        (repository / ".git" / "hooks" / hook).chmod(0o755)
    git(repository, "config", "filter.evil.smudge", f"touch {proof}")
    git(repository, "add", "-A")
    proof.unlink(missing_ok=True)  # the commit below may run its own hooks: they are the repository's
    care_of(tmp_path).installer.take(run(tmp_path, lambda care: care.offer(f"file://{repository}", "", "")))
    desk(tmp_path).view("deploy")
    assert not proof.exists()


def test_the_variables_that_a_skill_would_be_lent_are_shown(tmp_path: Path) -> None:
    text = skill_text("lend", required_environment_variables=["AWS_SECRET_ACCESS_KEY"])
    put(tmp_path / "elsewhere" / "lend", text)
    offer = run(tmp_path, lambda care: care.offer(str(tmp_path / "elsewhere" / "lend"), "", ""))
    assert [str(one) for one in offer.findings] == [
        "notice: SKILL.md:1: commands are given variables of yours: AWS_SECRET_ACCESS_KEY"
    ]


def test_from_a_folder_and_away_again(tmp_path: Path) -> None:
    put(tmp_path / "elsewhere" / "My Skill", skill_text("tidy", "Tidy up."))
    offer = run(tmp_path, lambda care: care.offer(str(tmp_path / "elsewhere" / "My Skill"), "", ""))
    care = care_of(tmp_path)
    care.installer.take(offer)
    with pytest.raises(UserError, match="there is a skill 'tidy' already"):
        run(tmp_path, lambda care: care.offer(str(tmp_path / "elsewhere" / "My Skill"), "", ""))
    assert [one.origin for one in care.facts()] == ["installed"]
    care.installer.remove(care.head("tidy"))
    assert care.facts() == []
    assert LockFile(care.book.own).entries() == {}


def test_a_kill_while_a_skill_is_replaced_loses_nothing(tmp_path: Path) -> None:
    put(tmp_path / "skills" / "cat" / "one", skill_text("one"))
    lock = LockFile(tmp_path / "skills")
    # What is on disk when the process dies between the two renames, and one that was half written.
    aside = tmp_path / "skills" / ".replaced"
    aside.mkdir()
    (tmp_path / "skills" / "cat" / "one").rename(aside / "cat%2Fone")
    (tmp_path / "skills" / ".new-1-abcd").mkdir()
    assert desk(tmp_path).book.all() == []
    with lock.changing():
        pass
    assert [head.place for head in desk(tmp_path).book.all()] == ["cat/one"]
    assert not (tmp_path / "skills" / ".new-1-abcd").exists()


def test_a_damaged_lock_file_is_told_and_nothing_is_guessed(tmp_path: Path) -> None:
    put(tmp_path / "skills" / "one", skill_text("one"))
    (tmp_path / "skills" / ".lock.json").write_text("{")
    assert "is damaged" in desk(tmp_path).view("one")["error"]


def test_processes_that_count_at_once_lose_no_count(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from hermes.extensions.skills.usage_log import UsageLog\n"
        "for _ in range(200): UsageLog(Path(sys.argv[1])).loaded('one', 's')"
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    workers = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], env=environ) for _ in range(3)]
    assert [worker.wait(60) for worker in workers] == [0, 0, 0]
    with (tmp_path / ".usage.jsonl").open("a") as file:
        file.write('{"name": "torn')  # by a kill
    assert UsageLog(tmp_path).counts() == {"one": 600}


def test_a_long_log_is_summed_up_without_losing_a_count(tmp_path: Path) -> None:
    log = UsageLog(tmp_path)
    (tmp_path / ".usage.jsonl").write_text('{"name":"one","loads":1,"at":5.0}\n' * 9_000)
    log.failed("one", "s")
    log.loaded("two", "s")
    totals = log.totals()
    assert (totals["one"].loads, totals["one"].failures, totals["one"].last, totals["two"].loads) == (9_000, 1, 5.0, 1)
    assert (tmp_path / ".usage.jsonl").stat().st_size < 1_000
    log.forget("one")
    assert log.counts() == {"two": 1}
