"""The demo, played whole: the recording fits the project, and everything around it really happens."""

import json
import os
import pty
import shlex
import subprocess
import sys
from pathlib import Path

from tests.surfaces.cli.conftest import Run

FIXED = "    return total - total * percent // 100\n"


def read_all(main: int) -> bytes:
    """What comes out of a terminal until its last user is gone."""
    seen = b""
    while True:
        try:
            chunk = os.read(main, 4096)
        except OSError:  # Linux's way of saying that the other side is closed
            return seen
        if not chunk:
            return seen
        seen += chunk


def test_the_demo_played_whole(run: Run, tmp_path: Path) -> None:
    """One play is looked at from all sides: it takes a while."""
    (tmp_path / "hermes-demo-1").mkdir()
    done = run("demo", "--yes", "--fast")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The model is a recording" in done.stdout
    assert list((tmp_path / "hermes-demo-1").iterdir()) == [], "each demo has a folder of its own"
    folder = tmp_path / "hermes-demo-2"
    _fixes_the_project(done.stdout, folder)
    _only_the_failing_tests_and_the_escape_fail(done.stdout)
    _holds_the_escape_and_takes_the_change_back(done.stdout, folder)
    _two_children_and_a_tool_of_a_server_are_at_work(done.stdout)
    _leaves_its_sessions(run, done.stdout)
    assert "kill -9" in done.stdout
    rows = (folder / "price_list.csv").read_text().splitlines()
    assert rows == [f"item {number},{250 * number}" for number in range(1, 41)]


def _fixes_the_project(said: str, folder: Path) -> None:
    assert "FAILED (failures=1)" in said
    assert said.count("--yes says once") == 1
    assert "+    return total - total * percent // 100" in said
    assert said.index("FAILED (failures=1)") < said.index("Ran 2 tests", said.index("// 100"))
    assert "without a test: shipping" in said
    assert FIXED in (folder / "prices.py").read_text(encoding="utf-8")
    assert not (folder / "build").exists()


def _only_the_failing_tests_and_the_escape_fail(said: str) -> None:
    marks = [line for line in said.splitlines() if line.startswith(("✓", "✗"))]
    assert len(marks) == 17
    assert [line.split()[2] for line in marks if line.startswith("✗")] == ["python3", "echo"]


def _holds_the_escape_and_takes_the_change_back(said: str, folder: Path) -> None:
    assert "the demo says no" in said
    assert not (folder.parent / ".bashrc").exists()
    assert "# 12 lamps in stock" in said
    assert "messages are taken back, and prices.py is as it was" in said
    assert "lamps" not in (folder / "prices.py").read_text(encoding="utf-8")


def _two_children_and_a_tool_of_a_server_are_at_work(said: str) -> None:
    assert said.count("a child begins: ") == 2
    assert "✓ mcp__stock__level lamp" in said
    assert "    12 of lamp\n" in said


def _leaves_its_sessions(run: Run, said: str) -> None:
    listed = json.loads(run("sessions", "list", "--json").stdout)
    assert [session["source"] for session in listed] == ["demo"] * 5
    first = listed[-1]["id"]
    assert first in said
    assert first in run("sessions", "search", "discounted", "--json").stdout
    texts = [run("sessions", "show", session["id"], "--tools").stdout for session in listed]
    assert "discounted" in texts[-1]
    # The one that was killed went on, and knew of what it did not know.
    assert [("make_list.py" in text, "utcome unknown" in text) for text in texts].count((True, True)) == 1


def test_with_nobody_to_ask_the_folder_stays_and_the_demo_goes_on(run: Run, tmp_path: Path) -> None:
    done = run("demo", "--fast")
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(path.name for path in (tmp_path / "hermes-demo-1" / "build").iterdir()) == ["prices.py"]
    assert "nobody to ask means no" in done.stdout
    assert FIXED in (tmp_path / "hermes-demo-1" / "prices.py").read_text(encoding="utf-8")


def test_the_commands_it_ends_with_can_be_typed_as_they_stand(run: Run, tmp_path: Path) -> None:
    launcher = tmp_path / "hermes"
    launcher.write_text(f'#!/bin/sh\nexec {sys.executable} -m hermes.surfaces.cli.main "$@"\n', encoding="utf-8")
    launcher.chmod(0o755)
    ending = run("demo", "--yes", "--fast", HERMES_LAUNCHER=str(launcher)).stdout.partition("Every step of it is kept")[
        2
    ]
    shown, searched, model, plain = (line.strip() for line in ending.splitlines() if line.startswith("  "))

    for words, told in ((shown, "test_prices.py"), (searched, "discounted")):
        assert words.startswith("./hermes ")
        done = run(*shlex.split(words)[1:])
        assert (done.returncode, told in done.stdout) == (0, True)
    assert (model, plain) == ("./hermes model", "./hermes")


def test_in_a_terminal_the_person_is_asked_once(environ: dict[str, str], tmp_path: Path) -> None:
    main, child = pty.openpty()
    words = [sys.executable, "-m", "hermes.surfaces.cli.main", "demo", "--fast"]
    process = subprocess.Popen(words, stdin=child, stdout=child, stderr=child, env=environ, cwd=tmp_path)
    os.close(child)
    seen = b""
    try:
        while b"Allow it?" not in seen:
            seen += os.read(main, 4096)
        os.write(main, b"o\n")
        seen += read_all(main)
    finally:
        code = process.wait(60)
        os.close(main)
    assert code == 0
    assert seen.count(b"Allow it?") == 1
    assert not (tmp_path / "hermes-demo-1" / "build").exists()


def test_without_what_speaks_mcp_it_says_so_and_goes_on(run: Run, environ: dict[str, str], tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(
        "import sys\nfrom importlib.machinery import PathFinder\nfind = PathFinder.find_spec\n"
        "PathFinder.find_spec = lambda name, *rest: None if name == 'mcp' else find(name, *rest)\n"
    )
    done = run("demo", "--yes", "--fast", PYTHONPATH=f"{hidden}:{environ['PYTHONPATH']}")
    assert done.returncode == 0, done.stderr
    assert "pip install 'hermes-runtime[mcp]'" in done.stdout
    assert "messages are taken back" in done.stdout
