"""Languages that their own program checks: what a write has broken is told, what was broken before is not."""

import os
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import ToolError
from hermes.seams import ExecResult
from hermes.tools.environments.local import LocalEnvironment
from hermes.tools.files.lint_report import MAX_LINTED_CHARS, lint
from tests.tools.files.workbench import Task, task_in

# Found before tests get a home of their own.
RUSTUP = os.environ.get("RUSTUP_HOME") or str(Path.home() / ".rustup")
FINE = {"status": "ok", "output": ""}


@dataclass(frozen=True)
class Language:
    """A text that is right, how it breaks, and what is said then."""

    program: str
    name: str
    right: str
    broken: str
    said: str


LANGUAGES = [
    Language("bash", "a.sh", "if true; then echo; fi\n", "if true; then\n", "syntax error"),
    Language("zsh", "a.zsh", "for x in a b; do echo $x; done\n", "for x in a b; do\n", "parse error"),
    Language("fish", "a.fish", "if true; echo; end\n", "if true; echo\n", "end"),
    Language("node", "a.cjs", "const a = require('b');\n", "const a = ;\n", "SyntaxError"),
    Language("node", "a.mjs", "import a from 'b';\nawait a;\n", "import a from ;\n", "SyntaxError"),
    Language("node", "script.js", "const a = require('b');\nwith (a) {}\n", "const a = ;\n", "SyntaxError"),
    Language("node", "module.js", "import a from 'b';\nexport const c = 1;\n", "export const a = ;\n", "token ';'"),
    Language("node", "await.js", "const a = await f();\n", "const a = await f(;\n", "SyntaxError"),
    Language("node", "jsx.js", "export const A = () => <b>x</b>;\n", "export const = 1;\n", "SyntaxError"),
    Language("tsc", "a.ts", "import {x} from './gone';\nconst a: string = 1 + x;\n", "const a: = 1;\n", "TS1"),
    Language("tsc", "a.tsx", "export const A = () => <b>x</b>;\n", "export const A = <b>;\n", "TS1"),
    Language("gofmt", "a.go", "package a\n\nfunc f() {   }\n", "package a\n\nfunc f( {\n", "expected"),
    Language("rustfmt", "a.rs", "async fn f() {  }\n", "fn f( {\n", "error"),
    Language("ruby", "a.rb", "BEGIN { exit 9 }\ndef f; end\n", "def f\n", "end"),
    Language("php", "a.php", "<?php echo 1;\n", "<?php echo ;\n", "syntax error"),
    Language("luac", "a.lua", "local a = 1\n", "local = 1\n", "expected"),
]


@pytest.fixture
async def task(tmp_path: Path) -> AsyncIterator[Task]:
    _path(tmp_path, os.environ["PATH"])
    async with task_in(tmp_path) as task:
        yield task


def _path(home: Path, path: str) -> None:
    """Have the login shell look for programs there: the system's profile sets a PATH of its own."""
    (home / ".profile").write_text(f"export PATH='{path}' RUSTUP_HOME='{RUSTUP}'\n")


def needs(language: Language) -> pytest.MarkDecorator:
    found = shutil.which(language.program)
    there = found is not None and (".cargo" not in found or (Path(RUSTUP) / "toolchains").is_dir())
    return pytest.mark.skipif(not there, reason=f"{language.program} is not installed")


@pytest.mark.real
@pytest.mark.parametrize(
    "language", [pytest.param(each, id=f"{each.program} {each.name}", marks=needs(each)) for each in LANGUAGES]
)
async def test_a_language_is_checked_by_its_own_program(task: Task, language: Language) -> None:
    right = await lint(task, f"/x/{language.name}", None, language.right)
    broken = await lint(task, f"/x/{language.name}", language.right, language.broken)
    known = await lint(task, f"/x/{language.name}", language.broken, "\n" + language.broken)

    assert right == FINE
    assert broken["status"] == "error"
    assert language.said in broken["output"]
    assert known == FINE


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a.ts", "tsc --noEmit --noResolve --noLib --skipLibCheck --allowJs --jsx preserve --pretty false a.ts"),
        ("a.go", "gofmt -e"),
        ("a.rs", "rustfmt --edition 2021 --emit stdout"),
        ("a.rb", "ruby -c"),
        ("a.php", "php -l"),
        ("a.lua", "luac -p -"),
    ],
)
async def test_only_lines_that_are_new_are_told(tmp_path: Path, name: str, words: str) -> None:
    """A program that finds an error in each line with `bad` in it, and says where."""
    tools = tmp_path / "tools"
    tools.mkdir()
    program, _, options = words.partition(" ")
    told = 1 if program == "tsc" else 2
    (tools / program).write_text(
        f"#!/bin/sh\n[ $1 != --version ] || exit 0; echo $* >> {tmp_path}/asked\n"
        f"[ {program} != tsc ] || exec < a.ts\n"
        f"grep -n bad | sed 's/:/: error TS1005: /' >&{told}\nexit 1\n"
    )
    (tools / program).chmod(0o755)
    _path(tmp_path, f"{tools}:{os.environ['PATH']}")
    # A PATH of the caller's that has a real one in it would come first.
    async with task_in(tmp_path, {"PATH": "/usr/bin:/bin"}) as task:
        answer = await lint(task, f"/x/{name}", "one bad\n", "# more\none bad\ntwo bad\n")

    assert set((tmp_path / "asked").read_text().splitlines()) == {options}
    assert answer["status"] == "error"
    assert "3: error TS1005: two bad" in answer["output"]
    assert ("one bad" in answer["output"]) == (program == "rustfmt")  # its errors take up several lines each


async def test_a_text_too_large_to_check_is_said_to_be_unchecked(task: Task) -> None:
    answer = await lint(task, "/x/a.py", None, "x = (\n" * MAX_LINTED_CHARS)

    assert answer["status"] == "skipped"


async def test_a_check_that_cannot_be_run_does_not_hide_that_the_file_was_written(task: Task, tmp_path: Path) -> None:
    class Unreachable(LocalEnvironment):
        async def execute(self, *_: Any, **__: Any) -> ExecResult:
            raise ToolError("the connection is gone")

    task.environment.__class__ = Unreachable

    answer = await task.call("write_file", path="a.sh", content="if\n")

    assert (tmp_path / "a.sh").read_text() == "if\n"
    assert answer["lint"] == {"status": "skipped", "message": "the check could not be run: the connection is gone"}
