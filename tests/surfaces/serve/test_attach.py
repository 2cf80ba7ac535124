"""`hermes attach` in a real terminal: live, left, lost, found again."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes.host.wire.serve_folder import ServeFolder
from hermes.testing.replies import calls, says
from hermes.testing.server import ServerThread
from tests.surfaces.cli.interactive.terminal import CTRL_D, ENTER, ESC, answering, hermes
from tests.surfaces.serve.conftest import WAIT_S, Serve

UsesModel = Callable[..., None]


@pytest.fixture
def screen(environ: dict[str, str]) -> dict[str, str]:
    return {**environ, "TERM": "xterm-256color"}


@pytest.fixture
def stopped(environ: dict[str, str], home: Path) -> Iterator[None]:
    """Whatever server an attach has started is ended afterwards."""
    yield
    subprocess.run(
        [sys.executable, "-m", "hermes", "serve", "--stop"], env=environ, timeout=WAIT_S, capture_output=True
    )
    assert not ServeFolder(home).is_held


def pid_of(home: Path) -> int:
    note = ServeFolder(home).note()
    assert note is not None
    return note.pid


@pytest.mark.usefixtures("stopped")
def test_attach_starts_a_server_talks_detaches_and_comes_back(
    screen: dict[str, str], uses_model: UsesModel, home: Path, tmp_path: Path
) -> None:
    slow = answering({"Slow": [calls("terminal", command=f"sleep 1.5; touch {tmp_path}/done"), says("It is done.")]})
    with ServerThread(slow) as model:
        uses_model(model.base_url)
        with hermes("attach", "--new", environ=screen, cwd=tmp_path) as one:
            one.wait_for("Ask something")
            one.type(f"Hello{ENTER}")
            one.wait_for("I was asked: Hello")
            one.type(f"Slow, please{ENTER}")
            one.wait_for("touch")
            one.type(f"/detach{ENTER}")
            one.wait_for("hermes attach 2")
            assert one.ended() == 0
        server = pid_of(home)
        with hermes("attach", environ=screen, cwd=tmp_path) as two:
            two.wait_for("It is done.")
            assert (tmp_path / "done").exists()
            two.type(f"/title Work{ENTER}")
            two.wait_for("now called 'Work'")
            with hermes("attach", "Work", "--read-only", environ=screen, cwd=tmp_path) as three:
                three.wait_for("It is done.")
                two.type(f"Again{ENTER}")
                three.wait_for("I was asked: Again")
                three.type(f"Mine{ENTER}")
                three.wait_for("read-only")
                three.type(CTRL_D)
                assert three.ended() == 0
            two.hang_up()
        assert pid_of(home) == server
        assert ServeFolder(home).is_held


@pytest.mark.usefixtures("stopped")
def test_a_question_waits_for_whoever_attaches_next(
    screen: dict[str, str], uses_model: UsesModel, tmp_path: Path
) -> None:
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "file").write_text("words")
    script = answering({"Clean": [calls("terminal", command="sleep 0.5; rm -rf gone"), says("All clean.")]})
    with ServerThread(script) as model:
        uses_model(model.base_url)
        with hermes("attach", "--new", environ=screen, cwd=tmp_path) as one:
            one.wait_for("Ask something")
            one.type(f"Clean{ENTER}")
            one.wait_for("rm -rf gone", "yes, once [o]")
            one.hang_up()
        listed = subprocess.run(
            [sys.executable, "-m", "hermes", "sessions", "list"],
            env=screen,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
        )
        assert "waits for an answer" in listed.stdout
        with hermes("attach", environ=screen, cwd=tmp_path) as two:
            two.wait_for("rm -rf gone")
            two.wait_for("yes, once [o]")
            assert "was cut off" not in two.text
            assert two.text.index(" messages") < two.text.index("Clean") < two.text.index("May this run")
            with hermes("attach", environ=screen, cwd=tmp_path) as three:
                three.wait_for("yes, once [o]")
                two.type(f"o{ENTER}")
                three.wait_for("Answered by terminal", "All clean.")
                three.type(CTRL_D)
                assert three.ended() == 0
            two.wait_for("All clean.")
            assert "Answered by" not in two.text
            two.type(CTRL_D)
            assert two.ended() == 0
    assert not (tmp_path / "gone").exists()


@pytest.mark.usefixtures("stopped")
def test_a_killed_server_is_replaced_and_the_screen_goes_on(
    screen: dict[str, str], uses_model: UsesModel, home: Path, tmp_path: Path
) -> None:
    script = answering({"Slow": [calls("terminal", command="sleep 60"), says("It is done.")]})
    with ServerThread(script) as model:
        uses_model(model.base_url)
        with hermes("attach", "--new", environ=screen, cwd=tmp_path) as one:
            one.wait_for("Ask something")
            one.type(f"Hello{ENTER}")
            one.wait_for("I was asked: Hello")
            one.type(f"Slow{ENTER}")
            one.wait_for("sleep 60")
            first = pid_of(home)
            os.kill(first, signal.SIGKILL)
            one.wait_for("Connected again.")
            one.wait_for("is unknown")
            assert pid_of(home) != first
            one.type(f"Still there?{ENTER}")
            one.wait_for("I was asked: Still there?")
            one.type(ESC)
            one.type(CTRL_D)
            assert one.ended() == 0


def test_a_client_of_another_version_is_told_what_to_restart(
    serve: Serve, uses_model: UsesModel, screen: dict[str, str], tmp_path: Path
) -> None:
    uses_model("http://127.0.0.1:9/v1")
    with serve() as served:
        client = served.client()
        told = client.reply(client.begin("client.hello", version="99.0.0"))
        assert (told["error"]["code"], "hermes serve --stop" in told["error"]["message"]) == (4010, True)
        told = client.reply(client.begin("client.hello", version="0.0.1"))
        assert "start this command again" in told["error"]["message"]


def test_a_session_has_the_folder_and_variables_of_the_client_that_made_it(
    serve: Serve, uses_model: UsesModel, tmp_path: Path
) -> None:
    command = 'echo "at $PWD with $LC_TIME and ${SECRET_OF_CLIENT:-nothing}"'
    with ServerThread(answering({"Where": [calls("terminal", command=command), says("There.")]})) as model:
        uses_model(model.base_url)
        folder = tmp_path / "elsewhere"
        folder.mkdir()
        with serve() as served:
            client = served.client()
            variables = {"PATH": os.environ["PATH"], "LC_TIME": "C.UTF-8", "SECRET_OF_CLIENT": "x"}
            client.ask("client.hello", cwd=str(folder), environ=variables)
            live = client.ask("session.create")["session_id"]
            client.ask("prompt.submit", session_id=live, text="Where")
            said = client.event("tool.complete")["payload"]["result"]["content"]
            assert f"at {folder} with C.UTF-8 and nothing" in said


def test_plain_sessions_cannot_be_detached(screen: dict[str, str], uses_model: UsesModel, tmp_path: Path) -> None:
    with ServerThread(answering({})) as model:
        uses_model(model.base_url)
        with hermes(environ=screen, cwd=tmp_path) as one:
            one.wait_for("Ask something")
            one.type(f"/detach{ENTER}")
            one.wait_for("lives in this terminal")
            one.type(CTRL_D)
            assert one.ended() == 0
    assert not ServeFolder(tmp_path / "home").is_held


@pytest.mark.usefixtures("stopped")
@pytest.mark.parametrize("source", ["pipe", "file"])
def test_what_is_piped_in_reaches_the_session(
    screen: dict[str, str], uses_model: UsesModel, tmp_path: Path, source: str
) -> None:
    words = tmp_path / "words"
    words.write_text("Hello from elsewhere")  # the last line need not end
    attach = f"{shlex.quote(sys.executable)} -m hermes attach --new"
    command = f"cat words | {attach}" if source == "pipe" else f"{attach} <words"
    with ServerThread(answering({})) as model:
        uses_model(model.base_url)
        ended = subprocess.run(
            ["sh", "-c", command], env=screen, cwd=tmp_path, timeout=WAIT_S, capture_output=True, check=False
        )
        assert (ended.returncode, ended.stderr) == (0, b"")
        with hermes("attach", environ=screen, cwd=tmp_path) as later:
            later.wait_for("I was asked: Hello from elsewhere")
            later.type(CTRL_D)
            assert later.ended() == 0


@pytest.mark.usefixtures("stopped")
def test_attach_with_nobody_there_ends(screen: dict[str, str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hermes", "attach"]
    ended = subprocess.run(
        command, env=screen, cwd=tmp_path, timeout=WAIT_S, capture_output=True, stdin=subprocess.DEVNULL
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
