"""The keys of the `display` section act."""

import re
from pathlib import Path

import pytest

from hermes.testing.replies import calls, says, thinks
from hermes.testing.server import ServerThread
from tests.surfaces.cli.interactive.conftest import Start
from tests.surfaces.cli.interactive.terminal import CTRL_D, ENTER, ESC, answering

PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)


def test_bell_title_time_and_price(start: Start, home: Path) -> None:
    (home / "config.yaml").write_text(
        "display: {bell_on_complete: true, terminal_title: true, timestamps: true, show_cost: true, compact: true}\n"
    )
    with ServerThread(answering({})) as server, start(server) as screen:
        screen.wait_for("Ask something")
        screen.type(f"Hello{ENTER}")
        screen.wait_for("I was asked: Hello", ":", " · cost unknown")
        screen.wait_until(lambda: b"\x07" in re.sub(rb"\x1b\]2;[^\x07]*\x07", b"", screen.raw), "the bell")
        screen.type(CTRL_D)
        assert screen.ended() == 0
    assert b"\x1b]2;hermes: " in screen.raw
    assert screen.raw.rfind(b"\x1b]2;\x07") > screen.raw.find(b"\x1b]2;hermes: ")
    asked = next(number for number, line in enumerate(screen.lines) if line.endswith("> Hello"))
    assert screen.lines[asked][2] == ":"
    assert screen.lines[asked + 1].startswith("I was asked")


def test_tool_lines_and_diffs_can_be_left_out(start: Start, home: Path, project: Path) -> None:
    (home / "config.yaml").write_text("display: {tool_progress: 'off', inline_diffs: false, streaming: false}\n")
    (project / "a.txt").write_text("one\n")
    script = answering({"Go": [calls("terminal", command="echo printed"), says("First.\n\nSecond.")]})
    with ServerThread(script) as server, start(server) as screen:
        screen.wait_for("Ask something")
        screen.type(f"Go{ENTER}")
        screen.wait_for("First.", "Second.", "tokens read")
        assert "✓ terminal" not in screen.text


def test_a_resumed_session_may_show_nothing_of_its_past(start: Start, home: Path) -> None:
    (home / "config.yaml").write_text("display: {resume_display: minimal}\n")
    with ServerThread(answering({})) as server:
        with start(server) as screen:
            screen.wait_for("Ask something")
            screen.type(f"Hello{ENTER}")
            screen.wait_for("I was asked: Hello", "tokens read")
            screen.type(CTRL_D)
            screen.ended()
        with start(server, "--continue") as screen:
            screen.wait_for("2 messages", "scripted · ")
            assert "I was asked" not in screen.text


def test_cleared_screen_is_a_new_session(start: Start) -> None:
    with ServerThread(answering({})) as server, start(server) as screen:
        screen.wait_for("Ask something")
        screen.type(f"Hello{ENTER}")
        screen.wait_for("I was asked: Hello")
        screen.type(f"/clear{ENTER}")
        screen.wait_for("A new session.")
        screen.wait_gone("I was asked: Hello")


def test_image_of_the_command_line_goes_with_the_first_message(start: Start, project: Path) -> None:
    (project / "a dot.png").write_bytes(PNG)
    with ServerThread(answering({})) as server, start(server, "chat", "--image", "a dot.png") as screen:
        screen.wait_for('> "a dot.png"')
        screen.type(f"what is it?{ENTER}")
        screen.wait_for("I was asked")
    assert '"image_url"' in server.requests[0].raw.decode()


def test_reference_that_cannot_be_opened_is_offered_again(start: Start) -> None:
    with ServerThread(answering({})) as server, start(server) as screen:
        screen.wait_for("Ask something", "scripted · ")
        screen.type(f"see @file:gone.txt {ENTER}")
        screen.wait_for("@file:gone.txt cannot be opened")
        screen.wait_until(lambda: screen.text.count("> see @file:gone.txt") == 2, "the offer")
        screen.type(ESC)
    assert server.requests == []


def test_a_long_question_stays_whole_on_the_screen_and_a_very_long_one_says_what_is_left_out(start: Start) -> None:
    words = " ".join(f"word{number}" for number in range(30))
    script = answering({"word": [says("Read.")], "row": [says("Seen.")]})
    with ServerThread(script) as server, start(server, columns=60) as screen:
        screen.wait_for("Ask something")
        screen.type(f"{words}{ENTER}")
        screen.wait_for("Read.", "tokens read")
        asked = next(number for number, line in enumerate(screen.lines) if line.startswith("> word0 "))
        end = next(number for number, line in enumerate(screen.lines) if line == "Read.")
        assert " ".join(screen.lines[asked:end]).split() == [">", *words.split()]
        rows = "\n".join(f"row {number}" for number in range(20))
        screen.type(f"\x1b[200~{rows}\x1b[201~{ENTER}")
        screen.wait_for("> row 0", "  row 11", "  … 8 more lines", "Seen.")
        assert "row 12" not in screen.text


def test_a_question_of_the_gate_is_broken_between_words(start: Start, project: Path) -> None:
    (project / "build").mkdir()
    script = answering({"Clean": [calls("terminal", command="rm -rf build"), says("It is gone.")]})
    with ServerThread(script) as server, start(server, columns=60) as screen:
        screen.wait_for("Ask something")
        screen.type(f"Clean up{ENTER}")
        screen.wait_for("4. yes, always", "> 5. no", "allow?")
        screen.type(f"what{ENTER}")
        screen.wait_for("Answer with one of the letters", "What you\nwere typing is kept.")
        screen.type(ESC)
        screen.wait_for("It is gone.")


@pytest.mark.parametrize("settings", ["", "agent: {verbose: true}\n"])
def test_a_verbose_conversation_shows_thoughts_and_more_of_what_tools_print(
    start: Start, home: Path, settings: str
) -> None:
    (home / "config.yaml").write_text(settings)
    words = ("chat",) if settings else ("chat", "-v")
    script = answering({"Go": [thinks("A thought.") + calls("terminal", command="seq 301 320"), says("Done.")]})
    with ServerThread(script) as server, start(server, *words) as screen:
        screen.wait_for("Ask something")
        screen.type(f"Go{ENTER}")
        screen.wait_for("A thought.", "301", "312", "320", "Done.")
