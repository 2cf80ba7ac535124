"""Write-then-run: where no border stands, what the session made is asked about before it runs."""

import os
import time
from pathlib import Path

import pytest

from hermes.tools.approval.analysis import View
from hermes.tools.approval.effects_model import Effect
from hermes.tools.approval.made_here import Makings, imports_made_here, of_shell, runs_made_here, since


class Session:
    """A workspace with files from before, and a moment at which the session began."""

    def __init__(self, work: Path) -> None:
        self.work = work
        for name in ("old.py", "Makefile", "old.sh", "package.json", "tests/test_old.py", "bin/tool"):
            self.write(name, "print(1)\n")
        self.began = max(path.stat().st_ctime for path in work.rglob("*")) + 1e-6
        while time.time() < self.began + 0.02:  # the kernel's clock for files is coarse
            os.stat(work)
        self.login = f"declare -x PATH=\"{os.environ['PATH']}\"\nalias ls='ls --color'\n"
        self.present = self.login

    def write(self, name: str, text: str) -> None:
        path = self.work / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def makings(self) -> Makings:
        return of_shell(self.login, self.present, since(self.began))

    def asked(self, command: str, *, only_shell: bool = False) -> list[Effect]:
        analysis = View(home="/home/me", workspace=str(self.work)).command(command, str(self.work))
        return runs_made_here(analysis, str(self.work), self.makings(), only_shell=only_shell)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


@pytest.mark.parametrize(
    "command",
    [
        "python3 old.py",
        "make",
        "make test",
        "bash old.sh",
        "./old.sh",
        "npm test",
        "pytest",
        "pytest tests",
        "ls",
        "git status",
    ],
)
def test_what_was_there_before_runs_unasked(session: Session, command: str) -> None:
    assert session.asked(command) == []


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("b.py", "python3 b.py"),
        ("b.py", "env FOO=1 python3 -u b.py"),
        ("b.py", "python3 < b.py"),
        ("b.py", "uv run b.py"),
        ("b.py", "python3 -m b"),
        ("Makefile", "make"),
        ("Makefile", "make -C . all"),
        ("b.sh", "sh b.sh"),
        ("b.sh", "./b.sh"),
        ("b.sh", "source b.sh"),
        ("b.js", "node b.js"),
        ("package.json", "npm run build"),
        ("tests/test_b.py", "pytest tests"),
        ("conftest.py", "pytest"),
        ("bin/ls", "bin/ls"),
        ("main.go", "go run main.go"),
        ("build.rs", "cargo build"),
    ],
)
def test_what_the_session_made_is_asked_about(session: Session, name: str, command: str) -> None:
    session.write(name, "print(2)\n")
    found = session.asked(command)
    assert [effect.kind for effect in found] == ["made_here"], found
    assert found[0].paths[0].endswith(name)
    assert "by whom is not known" in found[0].detail


def test_an_old_script_that_imports_a_new_module_is_asked_about(session: Session) -> None:
    session.write("evil.py", "x = 1\n")
    session.write("pkg/__init__.py", "import evil\n")
    found = imports_made_here("import json\nimport pkg", str(session.work), session.makings())
    assert {Path(effect.paths[0]).name for effect in found} == {"__init__.py", "evil.py"}
    assert imports_made_here("import json, os", str(session.work), session.makings()) == []


def test_a_program_put_before_others_on_path_is_asked_about(session: Session) -> None:
    session.write("bin/ls", "#!/bin/sh\n")
    assert session.asked("ls") == []
    session.present = f'declare -x PATH="{session.work}/bin:{os.environ["PATH"]}"\n'
    assert [effect.paths for effect in session.asked("ls -la")] == [(f"{session.work}/bin/ls",)]
    assert session.asked("ls", only_shell=True) == []


def test_an_alias_and_a_start_file_of_the_session_are_asked_about(session: Session) -> None:
    session.present = session.login + "alias ll='rm -rf ~/precious'\n"
    assert ["alias" in effect.detail for effect in session.asked("ll")] == [True]
    assert session.asked("ls") == []
    session.write("e.inc", "x\n")
    session.present = session.login + f'declare -x BASH_ENV="{session.work}/e.inc"\n'
    for only_shell in (False, True):
        assert ["BASH_ENV" in effect.detail for effect in session.asked("bash -c true", only_shell=only_shell)] == [
            True
        ]
