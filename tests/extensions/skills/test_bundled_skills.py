"""The skills that come with Hermes: what they tell to run works, and a chosen copy follows unless it was edited."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.errors import UserError
from hermes.extensions.skills import bundled_skills as bundled
from hermes.extensions.skills.lock_file import LockFile
from tests.extensions.skills.shelf import book

_BLOCK = re.compile(r"^```(bash|python)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_GIT = {f"GIT_{who}_{what}": "x@y.example" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def blocks(name: str, language: str) -> list[str]:
    text = (bundled.FOLDER / name / "SKILL.md").read_text().replace("${HERMES_SKILL_DIR}", str(bundled.FOLDER / name))
    return [code for kind, _, code in _BLOCK.findall(text) if kind == language]


def bash(code: str, folder: Path, **variables: str) -> str:
    path = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    environ = {"PATH": path, "HOME": str(folder.parent), "GIT_CONFIG_NOSYSTEM": "1", **_GIT, **variables}
    ran = subprocess.run(
        ["bash", "-euc", code], cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.returncode == 0, f"{code}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Five commits on main, the third of which breaks a script; then a branch with one more."""
    folder = tmp_path / "work" / "project"
    folder.mkdir(parents=True)
    bash("git init -q -b main . && git tag -a none -m x 2>/dev/null || true", folder)
    for number in range(1, 6):
        (folder / "answer.sh").write_text(f"exit {int(number >= 3)}\n# {number}\n")
        (folder / "pyproject.toml").write_text('[project]\nversion = "0.1.0"\n')
        bash(f"git add -A && git commit -qm 'Step {number}'", folder)
    return folder


def test_none_is_active_unless_chosen(tmp_path: Path) -> None:
    assert book(tmp_path).all() == []
    assert [head.name for head in bundled.bundled_skills()] == [
        *("bisect-failing-test", "csv-data", "make-release", "read-pdf", "review-diff", "write-hermes-tool"),
    ]
    assert not any(head.trouble or not head.description for head in bundled.bundled_skills())


def test_every_skill_has_a_test_of_what_it_tells_to_run() -> None:
    tested = "".join(name for name in globals() if name.startswith("test_"))
    for head in bundled.bundled_skills():
        assert head.name.replace("-", "_") in tested


def test_review_diff_shows_the_branch(repository: Path) -> None:
    bash("git checkout -qb change && echo 'print(1)  # TODO' > new.py && git add -A && git commit -qm New", repository)
    said = [bash(code, repository) for code in blocks("review-diff", "bash")]
    assert "new.py | 1 +" in said[0]
    assert "+print(1)  # TODO" in said[1]
    assert "TODO" in said[2]


def test_bisect_failing_test_finds_the_commit(repository: Path) -> None:
    first, search, clean = blocks("bisect-failing-test", "bash")
    (repository.parent / "bisect-check.sh").write_text("sh ./answer.sh\n")
    good = bash("git rev-parse HEAD~4", repository).strip()
    told = bash(first, repository, GOOD=good)
    assert "it fails here, as told" in told
    assert "it passes at GOOD, as told" in told
    found = bash(search, repository, GOOD=good, BAD=bash("git rev-parse HEAD", repository).strip())
    assert "# first bad commit:" in found
    assert "Step 3" in found.rpartition("# first bad commit:")[2]
    bash(clean, repository)
    assert not (repository.parent / "bisect-copy").exists()


def test_make_release_looks_at_what_is_there(repository: Path) -> None:
    said = [bash(code, repository, VERSION="0.2.0") for code in blocks("make-release", "bash")[:3]]
    assert "no tag yet" in said[0]
    assert "- Step 5" in said[1]
    assert "pyproject.toml:2:version" in said[2]


def test_make_release_commits_tags_and_checks(repository: Path) -> None:
    first, _, _, commit, check = blocks("make-release", "bash")
    (repository / "pyproject.toml").write_text('[project]\nversion = "0.2.0"\n')
    assert "M pyproject.toml" in bash(first, repository)
    assert "Release 0.2.0" in bash(commit, repository, VERSION="0.2.0")
    assert "v0.2.0" in bash(check, repository)


def test_csv_data_tells_the_shape_and_the_sums(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("city,price\nRome,3.50\nOslo,4\nRome,1.5\nBern,\n", encoding="utf-8")
    look, sums = (
        subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        for code in blocks("csv-data", "python")
    )
    assert "delimiter ',' | rows 4" in look
    assert "'price': 1 empty" in look
    assert sums.splitlines() == ["Rome 2 5.00", "Oslo 1 4", "rows that were left out: 1 [5]"]


def test_read_pdf_prints_pages(tmp_path: Path) -> None:
    pytest.importorskip("pypdf", reason="pypdf is not installed, and pdftotext may be missing, too")
    file = tmp_path / "two pages.pdf"
    file.write_bytes(_pdf("Invoice total 42", ""))
    summary, read = blocks("read-pdf", "bash")
    assert "2 pages" in (told := bash(summary, tmp_path, FILE=str(file)))
    assert "without text: [2]" in told
    said = bash(read, tmp_path, FILE=str(file))
    assert "Invoice total 42" in said
    assert "page 1: Invoice total 42" in said


def test_read_pdf_says_what_is_wrong(tmp_path: Path) -> None:
    script = bundled.FOLDER / "read-pdf" / "scripts" / "pdf_text.py"
    (tmp_path / "x.pdf").write_text("no pdf")
    ran = subprocess.run([sys.executable, script, "x.pdf"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "x.pdf cannot be read" in ran.stderr or "install one of them" in ran.stderr


def test_write_hermes_tool_makes_one_that_answers(tmp_path: Path) -> None:
    [tool] = blocks("write-hermes-tool", "python")
    home = tmp_path / "home"
    (home / "tools").mkdir(parents=True)
    (home / "tools" / "word_count.py").write_text(tool)
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name, words in (("hermes", "-m hermes"), ("hermes-python", "")):
        (bin_ / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        (bin_ / name).chmod(0o755)
    listed, call = blocks("write-hermes-tool", "bash")
    around = {"HERMES_HOME": str(home), "PATH": f"{bin_}:/usr/bin:/bin", "PYTHONPATH": os.pathsep.join(sys.path)}
    assert "word_count" in bash(listed, tmp_path, **around)
    assert bash(call, tmp_path, **around).strip() == '{"words": 3}'


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    """The bundled skills as a later version might have them."""
    folder = tmp_path / "shipped"
    shutil.copytree(bundled.FOLDER, folder)
    return folder


def test_a_chosen_copy_follows_unless_it_was_edited(tmp_path: Path, shipped: Path) -> None:
    home = book(tmp_path)
    for name in ("csv-data", "read-pdf"):
        bundled.choose(home, name, shipped)
    edited = tmp_path / "skills" / "read-pdf" / "SKILL.md"
    edited.write_text(edited.read_text() + "My own line.\n")
    assert bundled.follow(home, shipped) == []
    for name in ("csv-data", "read-pdf"):
        (shipped / name / "SKILL.md").write_text((shipped / name / "SKILL.md").read_text() + "Newer.\n")
    [told] = bundled.follow(home, shipped)
    assert "there is a newer 'read-pdf', and yours was edited" in told
    assert "Newer." in (tmp_path / "skills" / "csv-data" / "SKILL.md").read_text()
    assert edited.read_text().endswith("My own line.\n")
    assert bundled.follow(home, shipped) == [], "it is told once"


def test_only_what_is_there_can_be_chosen_and_once(tmp_path: Path) -> None:
    home = book(tmp_path)
    bundled.choose(home, "csv-data")
    entry = LockFile(home.own).entry("csv-data")
    assert entry is not None
    assert (entry.kind, entry.hash) == ("bundled", entry.taken)
    with pytest.raises(UserError, match="is a skill 'csv-data' already"):
        bundled.choose(home, "csv-data")
    with pytest.raises(UserError, match=r"there is no bundled skill '\.\./x'"):
        bundled.choose(home, "../x")


def _pdf(*pages: str) -> bytes:
    """A small PDF with these texts, one page each."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    kids = []
    font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    for text in pages:
        stream = f"BT /F1 24 Tf 72 700 Td ({text}) Tj ET" if text else ""
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        resources = f"<< /Font << /F1 {font} >> >>"
        page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents {len(objects)} 0 R"
        objects.append(f"{page} /Resources {resources} >>")
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    out, places = "%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    xref = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    return f"{out}{xref}trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF".encode()
