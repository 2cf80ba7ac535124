"""The first hours of two people, typed as README.md and docs/first-task.md say; and every command they are shown."""

import re
import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes.testing.replies import Reply, calls, says
from hermes.testing.server import RecordedRequest, ServerThread
from tests.docs.test_blocks import Block, blocks
from tests.e2e.clean_machine import CHECKOUT, HOME, ROOT, CleanMachine

pytestmark = pytest.mark.real
NOT_TYPED = ("./check",)  # it runs this page
PROJECT = f"{HOME}/project"
_HINT = re.compile(r"(?:(?<=[ `(:])|^)((?:\./hermes|'?/\S*?/hermes'?|hermes) (?:--?)?[a-z][^\n`;,)…]*)", re.MULTILINE)
_PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b|\.\.\.|…|\[")


def reply(request: RecordedRequest) -> Reply:
    """A tool turn for who asks for files, else an answer."""
    messages = request.json["messages"]
    asked = str(messages[-1]["content"])
    if "Give a title" in str(messages[0]["content"]):
        return says("A title")
    if messages[-1]["role"] == "user" and "project" in asked and request.json.get("tools"):
        return calls("terminal", command="ls")
    return says("Done.")


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[CleanMachine]:
    with ServerThread(reply) as server:
        made = CleanMachine(tmp_path, server.base_url)
        made.copy_checkout()
        (made.home / "project").mkdir()
        (made.home / "project/notes.md").write_text("# Notes\n")
        made.make_environment()
        yield made


def test_the_readme_typed_to_the_letter_and_every_command_it_leads_to(machine: CleanMachine) -> None:
    failed = follow(machine, ROOT / "README.md")

    assert failed == []
    assert (machine.home / ".local/bin/hermes").is_symlink()
    assert (machine.home / ".hermes").stat().st_mode & 0o077 == 0
    assert {entry.name for entry in machine.home.iterdir()} <= {
        *(".hermes", ".local", "hermes-runtime", "project", ".cache", ".bash_history")
    }
    assert wrong_hints(machine) == []


@pytest.mark.skipif(not (ROOT / "docs/first-task.md").exists(), reason="docs/first-task.md is not written yet")
def test_the_first_task_typed_to_the_letter(machine: CleanMachine) -> None:
    assert machine.type("./hermes install --yes", CHECKOUT) == 0
    machine.environ["PATH"] = f"{HOME}/.local/bin:{machine.environ['PATH']}"

    assert follow(machine, ROOT / "docs/first-task.md", PROJECT) == []
    assert wrong_hints(machine) == []


def follow(machine: CleanMachine, page: Path, cwd: str = CHECKOUT) -> list[str]:
    """Type every command of `page` in its order; those that did not end as they should."""
    failed = []
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.title is not None:
            file = machine.home / block.title.removeprefix("~/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            done = machine.run([f"{CHECKOUT}/.venv/bin/python", "-c", block.text], CHECKOUT)
            failed += [] if done.returncode == 0 else [f"line {block.line}: {done.stderr}"]
        elif block.language == "console":
            for line in typed_lines(block):
                if line.startswith("cd "):
                    cwd = line.removeprefix("cd ").replace("~", HOME)
                elif line not in NOT_TYPED and not is_right(machine, line, cwd, block):
                    failed.append(f"line {block.line}: {line}\n{machine.printed[-1]}")
            if any(line.endswith(" install") for line in typed_lines(block)):
                machine.environ["PATH"] = f"{HOME}/.local/bin:{machine.environ['PATH']}"  # as it says
    return failed


def typed_lines(block: Block) -> list[str]:
    return [line[2:] for line in block.text.replace("\\\n> ", "").splitlines() if line.startswith("$ ")]


def is_right(machine: CleanMachine, line: str, cwd: str, block: Block) -> bool:
    if line.endswith("hermes demo"):  # its pauses are for people: it is watched by tests/surfaces/cli/test_demo.py
        done = machine.run(["/bin/bash", "-c", line], cwd)
        machine.printed.append(done.stdout + done.stderr)
        return done.returncode == 0
    code = machine.type(line, cwd, ["Say hello\n"] if line == "hermes" else [])
    is_last = typed_lines(block)[-1] == line
    return (code != 0) == (block.remark == "fails" and is_last)


def hints(machine: CleanMachine) -> list[str]:
    """Every whole command that was printed."""
    found = [match.strip().rstrip(".:") for text in machine.printed for match in _HINT.findall(text)]
    return sorted({one for one in found if not _PLACEHOLDER.search(one)})


def wrong_hints(machine: CleanMachine) -> list[str]:
    """Those that are no commands as they stand: not found, or not understood."""
    wrong = []
    for hint in hints(machine):
        cwd = CHECKOUT if hint.startswith("./") else PROJECT
        if "--resume" in hint and " -q" not in hint:
            code, told = machine.type(hint, cwd, ["Say hello\n"]), machine.printed.pop()
        else:
            words = "--help" if hint.split()[1] in ("update", "uninstall") else ""  # what they do is tested elsewhere
            done = machine.run(["/bin/bash", "-c", f"{hint} {words}"], cwd)
            code, told = done.returncode, done.stderr
        if code in (2, 70, 126, 127):
            wrong.append(f"{hint}: {code} {told}")
    return wrong


@pytest.mark.full
def test_from_nothing_to_an_answer_an_installed_command_and_a_tool_turn(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """The one that fetches: a first start makes its environment with the settings of whoever runs this."""
    with ServerThread(reply) as server:
        machine = CleanMachine(tmp_path, server.base_url)
        since = time.monotonic()
        machine.copy_checkout()
        machine.let_it_fetch()
        (machine.home / "project").mkdir()
        del machine.environ["OLLAMA_HOST"]  # no server: it asks, and takes the model in the box
        assert machine.type('./hermes chat -q "Say hello"', CHECKOUT) == 0, machine.printed[-1]
        record_property("first answer, s", round(time.monotonic() - since))
        assert machine.type("./hermes install", CHECKOUT) == 0, machine.printed[-1]
        machine.environ["PATH"] = f"{HOME}/.local/bin:{machine.environ['PATH']}"
        record_property("installed, s", round(time.monotonic() - since))
        assert machine.type("hermes model", PROJECT) == 0, machine.printed[-1]
        asked = shlex.join(["hermes", "chat", "-q", "What does this project do?"])
        assert machine.type(asked, PROJECT) == 0, machine.printed[-1]
        record_property("first tool turn, s", round(time.monotonic() - since))
    assert "✓ terminal ls" in machine.printed[-1]
    assert wrong_hints(machine) == []
