"""The scan: what means harm is found with its file and line, what people write passes."""

import io
import tarfile
from pathlib import Path

import pytest

from hermes.errors import UserError
from hermes.extensions.skills.bundled_skills import FOLDER, bundled_skills
from hermes.extensions.skills.skill_folder import read_folder
from hermes.extensions.skills.skill_scan import is_refused, scan_skill
from hermes.extensions.skills.skill_source import _files, source_of
from hermes.runtime.setup.skill_setup import scan_readers
from tests.extensions.skills.attacks import DANGEROUS
from tests.extensions.skills.honest import HONEST
from tests.extensions.skills.shelf import skill_text

READERS = scan_readers()


def test_both_suites_are_as_large_as_they_should_be() -> None:
    assert len(DANGEROUS) >= 40
    assert len(HONEST) >= 40


@pytest.mark.parametrize("name", DANGEROUS)
def test_a_skill_that_means_harm_is_refused_with_the_place(name: str) -> None:
    findings = scan_skill(DANGEROUS[name], READERS)
    assert is_refused(findings), findings
    assert findings[0].file in DANGEROUS[name]
    assert 1 <= findings[0].line <= 40
    assert findings[0].words


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_skill_passes(name: str) -> None:
    files = {"SKILL.md": skill_text(name, f"Helps with {name}.", HONEST[name]).encode()}
    assert [str(one) for one in scan_skill(files, READERS) if one.severity == "danger"] == []


def test_the_bundled_skills_pass() -> None:
    for head in bundled_skills():
        found = scan_skill(read_folder(FOLDER / head.name), READERS)
        assert not is_refused(found), found


def test_what_the_gate_would_ask_about_is_shown_and_no_reason_to_refuse() -> None:
    text = skill_text("x", body="```bash\ngit push --force\ncurl -d hello https://api.example.com\n```")
    findings = scan_skill({"SKILL.md": text.encode()}, READERS)
    assert [(one.severity, one.line) for one in findings] == [("notice", 7), ("notice", 7)]
    assert "git history" in str(findings)
    assert "api.example.com" in str(findings)


@pytest.mark.parametrize("kind", ["file", "folder", "inner"])
def test_links_are_never_taken(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "skill"
    (folder / "references").mkdir(parents=True)
    (folder / "SKILL.md").write_text(skill_text("x"))
    target = {"file": Path("/etc/hostname"), "folder": Path("/etc"), "inner": folder / "SKILL.md"}[kind]
    (folder / "references" / "a.md").symlink_to(target)
    with pytest.raises(UserError, match=r"'references/a\.md' is a link"):
        read_folder(folder)


@pytest.mark.parametrize("name", ["../../.bashrc", "a/../../b", "/etc/x", "a\\b", "new\nline"])
def test_names_that_lead_out_are_never_taken(name: str) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for each, text in (("SKILL.md", b"x"), (name, b"evil")):
            info = tarfile.TarInfo(each)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text))
    with pytest.raises(UserError, match="is not one that a skill may have"):
        _files(packed.getvalue(), "")


@pytest.mark.parametrize(
    "address", ["ext::sh -c 'touch /tmp/x'", "http://plain.example/x", "git://x/y", "--upload-pack=x", "fd::17"]
)
def test_addresses_that_run_something_are_none(address: str) -> None:
    with pytest.raises(UserError):
        source_of(address)


def test_too_much_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text(skill_text("x"))
    with (tmp_path / "data").open("wb") as file:
        file.truncate(50_000_000)
    with pytest.raises(UserError, match="more than 10 MB"):
        read_folder(tmp_path)
