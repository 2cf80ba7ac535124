"""The demo, played whole: the recording fits the project, and everything around it really happens."""

import json
import os
import pty
import shlex
import subprocess
import sys
from pathlib import Path

from hermes.testing.replies import says
from hermes.testing.server import ServerThread
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
    assert done.stdout.count("? Hermes asks") == 1
    assert "+    return total - total * percent // 100" in done.stdout
    assert done.stdout.index("FAILED (failures=1)") < done.stdout.index("Ran 2 tests", done.stdout.index("// 100"))
    assert "without a test: shipping" in done.stdout
    folder = tmp_path / "hermes-demo-1"
    assert FIXED in (folder / "prices.py").read_text(encoding="utf-8")
    assert not (folder / "build").exists()

    listed = json.loads(run("sessions", "list", "--json").stdout)
    assert [session["source"] for session in listed] == ["demo"]
    session = listed[0]["id"]
    assert session in done.stdout
    assert "discounted" in run("sessions", "show", session).stdout
    assert session in run("sessions", "search", "discounted", "--json").stdout


def test_every_call_of_the_recording_but_the_failing_tests_succeeds(run: Run) -> None:
    done = run("demo", "--yes", "--fast")
    marks = [line for line in done.stdout.splitlines() if line.startswith(("✓", "✗"))]
    assert len(marks) == 10
    assert [line for line in marks if line.startswith("✗")] == ["✗ terminal python3 -m unittest -q"]


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
    ending = run("demo", "--yes", "--fast", HERMES_LAUNCHER=str(launcher)).stdout.partition("That was session")[2]
    shown, searched, model, resumed = (line.strip() for line in ending.splitlines() if line.startswith("  "))

    for words, told in ((shown, "test_prices.py"), (searched, "discounted")):
        assert words.startswith("./hermes ")
        done = run(*shlex.split(words)[1:])
        assert (done.returncode, told in done.stdout) == (0, True)
    assert model == "./hermes model"
    with ServerThread(lambda _: says("The last one.")) as server:
        done = run(*shlex.split(resumed)[1:], "--base-url", server.base_url, "--model", "scripted")
        asked = str(server.requests[0].json)
    assert done.stdout == "The last one.\n", done.stderr
    assert "Which line did you change?" in asked
    assert "without a test: shipping" in asked
    elsewhere = run("demo", "--yes", "--fast", HERMES_LAUNCHER="/else/where/hermes").stdout
    assert "  /else/where/hermes model\n" in elsewhere


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
