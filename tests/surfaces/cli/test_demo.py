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


def test_the_demo_fixes_the_project_and_leaves_a_session(run: Run, tmp_path: Path, home: Path) -> None:
    done = run("demo", "--yes", "--fast")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "The model is a recording" in done.stdout
    assert "FAILED (failures=1)" in done.stdout
    assert done.stdout.count("--yes says once") == 1
    assert "+    return total - total * percent // 100" in done.stdout
    assert done.stdout.index("FAILED (failures=1)") < done.stdout.index("Ran 2 tests", done.stdout.index("// 100"))
    assert "without a test: shipping" in done.stdout
    folder = tmp_path / "hermes-demo-1"
    assert FIXED in (folder / "prices.py").read_text(encoding="utf-8")
    assert not (folder / "build").exists()

    listed = json.loads(run("sessions", "list", "--json").stdout)
    assert [session["source"] for session in listed] == ["demo"] * 5
    session = listed[-1]["id"]
    assert session in done.stdout
    assert "discounted" in run("sessions", "show", session).stdout
    assert session in run("sessions", "search", "discounted", "--json").stdout


def test_every_call_of_the_recording_but_the_failing_tests_succeeds(run: Run) -> None:
    done = run("demo", "--yes", "--fast")
    marks = [line for line in done.stdout.splitlines() if line.startswith(("✓", "✗"))]
    assert len(marks) == 17
    failed = [line.split()[2] for line in marks if line.startswith("✗")]
    assert failed == ["python3", "echo"]  # the failing tests, and the escape


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


def test_each_demo_gets_a_folder_of_its_own_outside_the_home(run: Run, tmp_path: Path) -> None:
    (tmp_path / "hermes-demo-1").mkdir()
    assert run("demo", "--yes", "--fast").returncode == 0
    assert (tmp_path / "hermes-demo-2" / "prices.py").exists()
    assert list((tmp_path / "hermes-demo-1").iterdir()) == []


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


def test_it_is_killed_in_the_middle_and_goes_on_where_it_was(run: Run, tmp_path: Path) -> None:
    done = run("demo", "--yes", "--fast")
    assert "kill -9" in done.stdout
    rows = (tmp_path / "hermes-demo-1/price_list.csv").read_text().splitlines()
    assert rows == [f"item {number},{250 * number}" for number in range(1, 41)]
    listed = json.loads(run("sessions", "list", "--json").stdout)
    texts = [run("sessions", "show", session["id"], "--tools").stdout for session in listed]
    assert [("make_list.py" in text, "utcome unknown" in text) for text in texts].count((True, True)) == 1


def test_the_escape_is_held_and_the_rewind_takes_the_change_back(run: Run, tmp_path: Path) -> None:
    done = run("demo", "--yes", "--fast")
    assert "the demo says no" in done.stdout
    assert not (tmp_path / ".bashrc").exists()
    assert "# 12 lamps in stock" in done.stdout
    assert "messages are taken back, and prices.py is as it was" in done.stdout
    assert "lamps" not in (tmp_path / "hermes-demo-1/prices.py").read_text(encoding="utf-8")


def test_two_children_and_a_tool_of_a_server_are_at_work(run: Run) -> None:
    done = run("demo", "--yes", "--fast").stdout
    assert done.count("a child begins: ") == 2
    assert "✓ mcp__stock__level lamp" in done
    assert "    12 of lamp\n" in done


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
