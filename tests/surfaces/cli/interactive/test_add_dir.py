"""`--add-dir` and `/add-dir`, as a person uses them: what is written, where it really is, and what is asked."""

import shutil
from pathlib import Path

import pytest

from hermes.testing.replies import calls, says
from hermes.testing.server import ServerThread
from tests.surfaces.cli.interactive.conftest import Start
from tests.surfaces.cli.interactive.terminal import ENTER, answering

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


@pytest.fixture
def other(tmp_path: Path) -> Path:
    folder = tmp_path / "other"
    (folder / ".git" / "hooks").mkdir(parents=True)
    return folder


def test_a_folder_of_the_command_line_is_written_and_no_other(start: Start, other: Path, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    write = f"echo 1 > {other}/one; echo 2 > {closed}/two; echo 3 > {other}/.git/hooks/pre-commit; true"
    script = answering({"Write": [calls("terminal", command=write), says("Written.")]})
    with ServerThread(script) as server, start(server, "--add-dir", str(other)) as screen:
        screen.wait_for("Ask something")
        screen.type(f"Write.{ENTER}")
        screen.wait_for("Written.")
    assert (other / "one").read_text() == "1\n"
    assert not (closed / "two").exists()
    assert not (other / ".git" / "hooks" / "pre-commit").exists()


def test_a_folder_that_is_no_folder_is_refused_at_the_start(start: Start, tmp_path: Path) -> None:
    words = ("--add-dir", str(tmp_path / "gone"))
    with ServerThread(answering({})) as server, start(server, *words, columns=200) as screen:
        screen.wait_for("is no folder; name one that is there")
        assert screen.ended() != 0


def test_what_a_yes_opened_stays_open_when_a_folder_is_added_and_settings_change(
    start: Start, other: Path, tmp_path: Path
) -> None:
    by_yes = tmp_path / "by-yes"
    by_yes.mkdir()
    both = f"echo 1 > {other}/one; echo 2 > {by_yes}/two; echo 3 > {other}/.git/hooks/pre-commit; true"
    again = f"echo 4 > {other}/four; echo 5 > {by_yes}/five"
    script = answering(
        {
            "Note": [calls("write_file", path=str(by_yes / "note.txt"), content="a"), says("Noted.")],
            "Write": [calls("terminal", command=both), says("Written.")],
            "Again": [calls("terminal", command=again), says("Once more.")],
        }
    )
    with ServerThread(script) as server, start(server) as screen:
        screen.wait_for("Ask something")
        screen.type(f"Note it.{ENTER}")
        screen.wait_for("allow?")
        screen.type(f"s{ENTER}")
        screen.wait_for("Noted.")
        screen.type(f"/add-dir {other}{ENTER}")
        screen.wait_for("This session may write below")
        screen.type(f"Write both.{ENTER}")
        screen.wait_for("Written.")
        assert (by_yes / "note.txt").read_text() == "a"
        assert ((other / "one").read_text(), (by_yes / "two").read_text()) == ("1\n", "2\n")
        assert not (other / ".git" / "hooks" / "pre-commit").exists()
        screen.type(f"/reasoning high{ENTER}")
        screen.wait_for("high")
        screen.type(f"Again.{ENTER}")
        screen.wait_for("Once more.")
        assert ((other / "four").read_text(), (by_yes / "five").read_text()) == ("4\n", "5\n")
        screen.type(f"/add-dir /{ENTER}")
        screen.wait_for("that is the whole machine")
