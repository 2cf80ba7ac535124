"""Which model a first run takes, and that it says so."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from hermes.host.model_discovery import ServerPlace, by_server
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.exit_codes import Exit
from hermes.surfaces.cli.output import Output
from hermes.testing.replies import says
from hermes.testing.server import ServerThread
from tests.surfaces.cli.conftest import Run
from tests.surfaces.cli.interactive.terminal import CTRL_C, hermes


def test_a_local_server_answers_the_first_question_and_is_named_on_stderr(run: Run) -> None:
    with ServerThread(lambda _: says("I am here.")) as server:
        done = run("chat", "-q", "Who is there?", OLLAMA_HOST=server.url.removeprefix("http://"))
        assert done.returncode == 0, done.stderr
        assert done.stdout == "I am here.\n"
        assert "model: scripted at" in done.stderr
        assert len([line for line in done.stderr.splitlines() if line.startswith("model:")]) == 1
        done = run("chat", "-Q", "-q", "Again", "--base-url", server.base_url, "--model", "scripted")
        assert "model:" not in done.stderr


@pytest.fixture
def nobody_listens() -> None:
    """Leave out a test of empty machines on one where a model server runs."""
    for port in (11434, 1234, 8080, 8000):
        place = ServerPlace("", "127.0.0.1", port)
        if asyncio.run(by_server([place])) is not None:
            pytest.skip(f"a model server runs on the usual port {port}")


@pytest.mark.usefixtures("nobody_listens")
def test_without_any_model_and_without_a_launcher_it_says_what_to_do(run: Run, home: Path) -> None:
    done = run("chat", "-q", "Hello?")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "no local server answers" in done.stderr
    assert "pip install" in done.stderr  # what works where there is no launcher


@pytest.mark.usefixtures("nobody_listens")
def test_the_launcher_is_asked_to_install_the_box_and_its_failure_is_told(run: Run, tmp_path: Path) -> None:
    launcher = tmp_path / "launcher"
    launcher.write_text('#!/bin/sh\necho "asked: $*" >&2\nexit 3\n', encoding="utf-8")
    launcher.chmod(0o755)
    done = run("chat", "-q", "Hello?", HERMES_LAUNCHER=str(launcher))
    assert done.returncode == 1
    assert "asked: --install-extra local" in done.stderr
    assert "could not be installed" in done.stderr


@pytest.mark.usefixtures("nobody_listens")
def test_ctrl_c_while_the_box_is_fetched_ends_the_installer_too(environ: dict[str, str], tmp_path: Path) -> None:
    launcher = tmp_path / "launcher"
    launcher.write_text('#!/bin/sh\necho "pid $$"\nexec sleep 600\n', encoding="utf-8")
    launcher.chmod(0o755)
    words = [sys.executable, "-m", "hermes.surfaces.cli.main", "chat", "-q", "Hello?"]
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**environ, "HERMES_LAUNCHER": str(launcher)},
        cwd=tmp_path,
        text=True,
    )
    assert process.stderr is not None
    with process.stderr as told:
        line = next(line for line in told if line.startswith("pid "))
        process.send_signal(signal.SIGINT)
        rest = told.read()
    assert process.wait(30) == 130
    assert "Stopped." in rest
    assert not psutil.pid_exists(int(line.split()[1]))


@pytest.mark.usefixtures("nobody_listens")
@pytest.mark.parametrize(
    ("more", "asked"),
    [({}, "Provider, by number or name"), ({"HERMES_LAUNCHER": "./hermes"}, "2  try the one in the box")],
)
def test_a_person_is_asked_first_and_offered_the_box_where_it_can_be_had(
    environ: dict[str, str], tmp_path: Path, more: dict[str, str], asked: str
) -> None:
    with hermes("chat", "-q", "Hello?", environ={**environ, **more}, cwd=tmp_path) as terminal:
        terminal.wait_for("No model is configured", asked)
        assert ("the box, a 135M" in terminal.text) == bool(more)
        terminal.type(CTRL_C)
        assert terminal.ended() == Exit.CANCELLED


def test_a_profile_shares_the_weights_of_the_root(home: Path) -> None:
    cli = Cli(home=home / "profiles" / "x", environ={"HERMES_HOME": str(home)}, out=Output(sys.stdout, sys.stderr, {}))
    assert cli.root == home
