"""What comes from elsewhere: a picture of the clipboard, words of an editor, a page of the web."""

import base64
import os
from pathlib import Path
from typing import Any

import pytest

from hermes.testing.replies import says
from hermes.testing.server import ScriptedServer, ServerThread
from tests.surfaces.cli.interactive.conftest import Start
from tests.surfaces.cli.interactive.terminal import CTRL_D, ENTER, answering

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(64))
CTRL_E, CTRL_G, CTRL_V, CTRL_X = "\x05", "\x07", "\x16", "\x18"


def program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def last_user(server: ScriptedServer, words: str) -> Any:
    """The last message of the first request that holds `words`."""
    bodies: list[Any] = [request.json for request in server.requests if request.method == "POST"]
    return next(body["messages"][-1]["content"] for body in bodies if words in str(body["messages"][-1]))


@pytest.fixture
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of programs outside the workspace, where no program of the runtime's own is looked for."""
    return tmp_path_factory.mktemp("bin")


def test_a_picture_of_the_clipboard_goes_with_the_message(
    start: Start, environ: dict[str, str], elsewhere: Path, home: Path
) -> None:
    (elsewhere / "dot.png").write_bytes(PNG)
    # As on a machine with both: the first has nothing to give, the second has the picture.
    program(elsewhere, "wl-paste", "echo 'No selection' >&2; exit 1")
    program(elsewhere, "xclip", f'[ "$4" = image/png ] && cat {elsewhere}/dot.png')
    with ServerThread(answering({})) as server, start(server, PATH=f"{elsewhere}:{environ['PATH']}") as screen:
        screen.wait_for("Ask something", "scripted · ")
        screen.type("look at ")
        screen.type(CTRL_V)
        screen.wait_for("> look at ", '.png"')
        screen.type(f"please{ENTER}")
        screen.wait_for("I was asked: ")
    text, picture = last_user(server, "look at")
    assert text["text"].endswith('.png" please')
    assert picture["image_url"]["url"] == f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    (kept,) = (home / "image_cache").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600


def test_a_clipboard_without_a_picture_or_without_a_reader_is_one_sentence(
    start: Start, environ: dict[str, str], elsewhere: Path
) -> None:
    program(elsewhere, "xclip", "echo words")
    with ServerThread(answering({})) as server:
        with start(server, PATH=f"{elsewhere}:{environ['PATH']}") as screen:
            screen.wait_for("Ask something", "scripted · ")
            screen.type("a draft")
            screen.type("\x1bv")
            screen.wait_for("there is no picture in the clipboard", "> a draft")
        (elsewhere / "xclip").unlink()
        with start(server, PATH=str(elsewhere)) as screen:
            screen.wait_for("Ask something", "scripted · ")
            screen.type(CTRL_V)
            screen.wait_for("install wl-clipboard, xclip\nor pngpaste")


def test_an_editor_changes_the_input_line(start: Start, tmp_path: Path) -> None:
    program(tmp_path / "bin", "edit", 'cp "$1" "$(dirname "$0")/seen"; printf "\\nsecond line\\n" >> "$1"')
    pasted = "\n".join(f"line {number}" for number in range(9))
    with ServerThread(answering({})) as server, start(server, EDITOR=f"{tmp_path}/bin/edit") as screen:
        screen.wait_for("Ask something", "scripted · ")
        screen.type("first line")
        screen.wait_for("> first line")
        screen.type(CTRL_G)
        screen.wait_for("second line")
        screen.type(CTRL_X + CTRL_E)
        screen.wait_until(lambda: screen.text.count("second line") == 2, "a second round in the editor")
        screen.type(ENTER)
        screen.wait_for("I was asked: first line")
        screen.type(f"\x1b[200~{pasted}\x1b[201~")
        screen.wait_for("[pasted 9 lines]")
        screen.type(CTRL_G)
        screen.wait_until(lambda: (tmp_path / "bin" / "seen").read_text() == pasted, "the editor with the whole paste")
    assert last_user(server, "first line") == "first line\nsecond line\nsecond line"


def test_what_streams_while_an_editor_is_open_comes_afterwards(start: Start, tmp_path: Path, project: Path) -> None:
    script = answering({"Talk": [says("I talk.\n\n" * 40 + "The end.").timed(chunk_size=9, chunk_delay_s=0.02)]})
    program(tmp_path / "bin", "edit", f"printf EDITING; : > {project}/open; read _ < {project}/go; printf CLOSED")
    with ServerThread(script) as server, start(server, EDITOR=f"{tmp_path}/bin/edit") as screen:
        os.mkfifo(project / "go")
        screen.wait_for("Ask something", "scripted · ")
        screen.type(f"Talk.{ENTER}")
        screen.wait_for("I talk.")
        screen.type(CTRL_G)
        screen.wait_for("EDITING")
        with (project / "go").open("w") as line:
            line.write("\n")
        screen.wait_for("The end.", "scripted · ")
        screen.type(CTRL_D)
        assert screen.ended() == 0
    between = screen.raw.partition(b"EDITING")[2].partition(b"CLOSED")[0]
    assert b"talk" not in between


def test_a_page_is_put_below_the_message(start: Start, home: Path) -> None:
    (home / "config.yaml").write_text("security: {allow_private_urls: true}\n")
    with ServerThread(answering({})) as server, start(server) as screen:
        page = f"{server.base_url}/models"
        screen.wait_for("Ask something", "scripted · ")
        screen.type(f"see @url:{page}.{ENTER}")
        screen.wait_for("I was asked: see @url:")
        screen.type(f"and @url:http://127.0.0.1:9/gone{ENTER}")
        screen.wait_for("@url:http://127.0.0.1:9/gone cannot be opened", "> and @url:")
    told = last_user(server, "see @url:")
    assert f'<page url="{page}">' in told
    assert "scripted" in told.partition("<page")[2]
