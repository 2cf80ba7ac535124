"""Run the code blocks of README.md and docs/*.md, page by page and in order, each page in a home of its own.

How a page is written:

- A `python` block is a program: it runs by itself, and must end without an error.
- A block in any language with `title="PATH"` in its first line is a file: it is written there (`~` is the page's home).
- In a `console` block each line after `$ ` is a command for sh, and must succeed. Lines below it are what it prints,
  on stdout and stderr together; a line `...` stands for any lines, and `...` inside a line for any characters. A
  command with no lines below it may print anything.
- `<!-- fails -->` on the line before a block: its last command, or the program, must fail.
- `<!-- with a model -->` on the line before a block: a scripted server plays Ollama meanwhile, and says "Done." to all.
- `<!-- with a model: [{"says": "Hi."}] -->`: it plays these replies (see `hermes.testing.load_script`), all of them,
  and the settings of the page's home have its address as that of the model.
- `<!-- needs the box -->` on the line before a block: it runs with the real model in the box, whose weights are also in
  `~/models/own.gguf`; where that is not installed it is left out, and counted as skipped.
- `<!-- not run: REASON -->` on the line before a block: it is left out, and counted as skipped with that reason.
- Blocks in other languages are shown only.

`hermes`, `./hermes` and `python` are those of this checkout. Nothing outside this machine can be reached.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from hermes.models.box.files import BUNDLED
from hermes.testing.replies import load_script, says
from hermes.testing.server import ServerThread
from tests.models.box.conftest import weights  # noqa: F401 - a fixture

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
TIMEOUT_S = 120
_FENCE = re.compile(r"^( *)(`{3,})(\w*)[ \t]*(.*)$")
_TITLE = re.compile(r'title="([^"]+)"')
_REMARK = re.compile(r"^\s*<!--\s*(fails|with a model(?:: \[.+\])?|needs the box|not run: .+?)\s*-->\s*$")


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    line: int
    language: str
    title: str | None
    text: str
    remark: str


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    lines = text.splitlines()
    place = 0
    while place < len(lines):
        opening = _FENCE.match(lines[place])
        if opening is None:
            place += 1
            continue
        indent, ticks, language, rest = opening.groups()
        end = next((number for number in range(place + 1, len(lines)) if lines[number].strip() == ticks), len(lines))
        before = _REMARK.match(lines[place - 1]) if place else None
        title = _TITLE.search(rest)
        body = [line.removeprefix(indent) for line in lines[place + 1 : end]]
        yield Block(
            place + 1, language, title[1] if title else None, "\n".join(body) + "\n", before[1] if before else ""
        )
        place = end + 1


@dataclass(frozen=True)
class Bench:
    """Where the blocks of one page run."""

    folder: Path
    environ: dict[str, str]

    def shell(self, command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=self.folder,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )

    def put_box(self, file: Path) -> None:
        """Give the page's home the weights of the box, twice: as ours, and as a file of the user's own."""
        for place in (self.path(f"~/.hermes/models/{BUNDLED}"), self.path("~/models/own.gguf")):
            place.parent.mkdir(parents=True, exist_ok=True)
            if not place.exists():
                place.symlink_to(file)

    def has_box(self) -> bool:
        return self.path("~/models/own.gguf").exists()

    def path(self, title: str) -> Path:
        if title.startswith("~/"):
            return Path(self.environ["HOME"]) / title[2:]
        return self.folder / title


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    folder, home, programs = tmp_path / "work", tmp_path / "page-home", tmp_path / "bin"
    for one in (folder, home, programs):
        one.mkdir()
    start = f'#!/bin/sh\nexec "{sys.executable}" -P -m hermes.surfaces.cli.main "$@"\n'
    for file, text in (
        (programs / "hermes", start),
        (folder / "hermes", start),
        (programs / "python", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n'),
    ):
        file.write_text(text, encoding="utf-8")
        file.chmod(0o755)
    environ = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(home),
        "PYTHONPATH": str(ROOT / "src"),
        "LANG": "C.UTF-8",
        "NO_COLOR": "1",
    }
    return Bench(folder, environ)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_of_the_page_does_what_it_says(
    page: Path, bench: Bench, subtests: pytest.Subtests, request: pytest.FixtureRequest
) -> None:
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.language not in ("python", "console") and block.title is None:
            continue
        if block.remark.startswith("not run: "):
            with subtests.test(f"line {block.line}"):
                pytest.skip(block.remark.removeprefix("not run: "))
            continue
        if block.remark == "needs the box":
            with subtests.test(f"line {block.line}"):
                bench.put_box(request.getfixturevalue("weights"))
            if not bench.has_box():
                continue
        where = f"{page.relative_to(ROOT)}, line {block.line}"
        if block.title is not None:
            file = bench.path(block.title)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")
            continue
        run = run_console if block.language == "console" else run_program
        if block.remark.startswith("with a model"):
            with served(bench, block.remark.removeprefix("with a model").removeprefix(": "), where) as with_model:
                run(with_model, block, where)
        else:
            run(bench, block, where)


@contextmanager
def served(bench: Bench, script: str, where: str) -> Iterator[Bench]:
    """`bench` with a server that plays Ollama."""
    if not script:
        with ServerThread(lambda _: says("Done.")) as server:
            yield replace(bench, environ={**bench.environ, "OLLAMA_HOST": server.url.removeprefix("http://")})
        return
    file = bench.folder / ".script.json"
    file.write_text(script, encoding="utf-8")
    with ServerThread(load_script(file)) as server:
        settings = bench.path("~/.hermes/config.yaml")
        text, places = re.subn(r"base_url: .*", f"base_url: {server.base_url}", settings.read_text(encoding="utf-8"))
        assert places == 1, f"{where}: the page has to set model.base_url before"
        settings.write_text(text, encoding="utf-8")
        yield bench
    assert not server.mistakes, f"{where}: {server.mistakes}"
    server.assert_finished()


def run_program(bench: Bench, block: Block, where: str) -> None:
    script = bench.folder / ".block.py"
    script.write_text("\n" * block.line + block.text, encoding="utf-8")
    done = bench.shell(f"python {script}")
    assert (done.returncode != 0) == (block.remark == "fails"), f"{where}:\n{done.stdout}"


def run_console(bench: Bench, block: Block, where: str) -> None:
    commands = list(spoken(block.text))
    for number, (command, expected) in enumerate(commands):
        done = bench.shell(command)
        may_fail = block.remark == "fails" and number == len(commands) - 1
        assert (done.returncode != 0) == may_fail, f"{where}: $ {command}\n{done.stdout}"
        if expected:
            assert re.fullmatch(pattern(expected), done.stdout.rstrip("\n")), (
                f"{where}: $ {command}\nprinted:\n{done.stdout}\nthe page says:\n{expected}"
            )


def spoken(text: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block, with what stands below it. A trailing backslash goes on in the next line."""
    command: str | None = None
    below: list[str] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            if command is not None:
                yield command, "\n".join(below).strip("\n")
            command, below = line[2:], []
        elif command is not None and command.endswith("\\") and not below:
            command = f"{command}\n{line.removeprefix('> ')}"
        else:
            below.append(line)
    if command is not None:
        yield command, "\n".join(below).strip("\n")


def pattern(expected: str) -> str:
    """A regular expression for what a page says is printed."""
    lines = [r"(?:.*\n)*?.*" if line.strip() == "..." else _loose(line) for line in expected.splitlines()]
    return r"\n".join(lines)


def _loose(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.rstrip().split("...")) + r"[ \t]*"


def test_the_runner_finds_a_wrong_page(tmp_path: Path, bench: Bench) -> None:
    good = "```console\n$ echo one two\none ...\n$ true\n```\n```python\nassert 1\n```\n"
    for block in blocks(good):
        (run_console if block.language == "console" else run_program)(bench, block, "page")
    for bad in ("```console\n$ echo one\ntwo\n```\n", "```console\n$ false\n```\n", "```python\n1 / 0\n```\n"):
        (block,) = blocks(bad)
        with pytest.raises(AssertionError):
            (run_console if block.language == "console" else run_program)(bench, block, "page")
