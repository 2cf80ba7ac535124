"""Approvals as a list, modes on a key, calls unfolded, commands of one's own: as a person at the terminal uses them."""

from pathlib import Path

from hermes.testing.replies import calls, says
from hermes.testing.server import ServerThread
from tests.surfaces.cli.interactive.conftest import Start
from tests.surfaces.cli.interactive.terminal import CTRL_C, CTRL_D, DOWN, ENTER, ESC, answering

SHIFT_TAB, CTRL_O, CTRL_R = "\x1b[Z", "\x0f", "\x12"


def test_no_and_what_to_do_instead(start: Start, project: Path) -> None:
    (project / "kept").mkdir()
    script = [calls("terminal", command="rm -rf kept"), says("Then I use git clean.")]
    with ServerThread([*script, says("A title")]) as server, start(server) as screen:
        screen.wait_for("Ask something")
        screen.type(f"Remove it.{ENTER}")
        screen.wait_for("> 5. no", "allow?")
        screen.type(DOWN)
        screen.wait_for("> 6. no, and tell it")
        screen.type(f"use git clean{ENTER}")
        screen.wait_for("rm -rf kept: you said no", "Then I use git clean.")
    assert (project / "kept").exists()
    told = str(server.requests[1].json["messages"])
    assert "use git clean" in told


def test_a_digit_answers_at_once(start: Start, project: Path) -> None:
    (project / "gone").mkdir()
    script = answering({"Remove": [calls("terminal", command="rm -rf gone"), says("It is removed.")]})
    with ServerThread(script) as server, start(server) as screen:
        screen.wait_for("Ask something")
        screen.type(f"Remove it.{ENTER}")
        screen.wait_for("1. yes, once", "a number: at once · a letter or arrows: Enter", "allow?")
        screen.type("1")
        screen.wait_for("✓ allowed once", "It is removed.")
    assert not (project / "gone").exists()


def test_shift_tab_asks_before_edits_then_plans(start: Start, project: Path) -> None:
    write = calls("write_file", path="a.txt", content="new\n")
    with ServerThread(answering({"Write": [write, says("Well.")]})) as server, start(server) as screen:
        screen.wait_for("Ask something", "edits on")
        screen.type(SHIFT_TAB)
        screen.wait_for("asks before edits")
        screen.type(f"Write{ENTER}")
        screen.wait_for("May this be written", "1 +new", "allow?")
        screen.type(ESC)
        screen.wait_for("you said no", "Well.")
        screen.type(SHIFT_TAB)
        screen.wait_for("plan: changes nothing")
    assert not (project / "a.txt").exists()


def test_what_a_child_asks_is_asked_with_its_name(start: Start, project: Path) -> None:
    (project / "gone").mkdir()
    goal = "Tidy up the folder."
    asked = [
        calls("terminal", command="rm -rf gone"),
        calls("write_file", path="a.txt", content="new\n"),
        says("Tidy."),
    ]
    script = answering({"Begin": [calls("delegate_task", goal=goal), says("All done.")], goal: asked})
    with ServerThread(script) as server, start(server) as screen:
        screen.wait_for("Ask something", "edits on")
        screen.type(SHIFT_TAB)
        screen.wait_for("asks before edits")
        screen.type(f"Begin{ENTER}")
        screen.wait_for("Asked by the child sa-0-", f": {goal}", "May this run", "rm -rf gone", "allow?")
        screen.type("1")
        screen.wait_for("✓ allowed once", "May this be written to ~/project/a.txt?", "1 +new", "allow?")
        screen.type(ESC)
        screen.wait_for("you said no", "All done.")
        assert sum("Asked by the child sa-0-" in line for line in screen.lines) == 2
        assert "• [" not in screen.text
    assert not (project / "gone").exists()
    assert not (project / "a.txt").exists()


def test_a_call_is_unfolded_and_folded(start: Start) -> None:
    script = answering({"Count": [calls("terminal", command="seq 1 9"), says("Nine.")]})
    with ServerThread(script) as server, start(server) as screen:
        screen.wait_for("Ask something")
        screen.type(f"Count{ENTER}")
        screen.wait_for("… 4 lines before", "Nine.")
        screen.type(CTRL_O)
        screen.wait_for("command: seq 1 9", "lines 1 to", "Ctrl-O folds")
        screen.type(CTRL_O)
        screen.wait_gone("Ctrl-O folds")


def test_a_command_of_the_persons_own_joins_the_next_message(start: Start, project: Path) -> None:
    with ServerThread(answering({"myself": [says("I see.")]})) as server, start(server) as screen:
        screen.wait_for("Ask something")
        screen.type(f"!echo $((6 * 7)) > made; cat made{ENTER}")
        screen.wait_for("✓ ! echo", "  42", "told to the model with your next message")
        screen.type(f"!rm -rf /{ENTER}")
        screen.wait_for("that never runs here")
        screen.type(f"And?{ENTER}")
        screen.wait_for("I see.")
        screen.type(CTRL_D)
        assert screen.ended() == 0
    assert (project / "made").read_text() == "42\n"
    assert "$ echo $((6 * 7))" in str(server.requests[0].json["messages"])


def test_a_command_of_the_persons_own_is_stopped_by_esc_and_with_the_program(start: Start) -> None:
    with ServerThread(answering({"myself": [says("I see.")]})) as server, start(server) as screen:
        screen.wait_for("Ask something")
        screen.type(f"!echo begun; sleep 600{ENTER}")
        screen.wait_for("  begun")
        screen.type(f"And now?{ENTER}")
        screen.wait_for("I was asked: And now?", "tokens read", "● ! echo begun")  # no turn ends it
        screen.type(f"!echo second{ENTER}")
        screen.wait_for("still running; Esc stops it")
        screen.type(ESC)
        screen.wait_for("✗ ! echo begun; sleep 600", "exit code 130", "[stopped]")
        screen.type(f"!echo again; sleep 600{ENTER}")
        screen.wait_for("  again")
        screen.type(CTRL_D)
        assert screen.ended() == 0


def test_what_was_typed_is_found_again(start: Start) -> None:
    with ServerThread(answering({})) as server, start(server) as screen:
        screen.wait_for("Ask something")
        screen.type(f"a rare thought{ENTER}")
        screen.wait_for("I was asked: a rare thought", "tokens read")
        screen.type(f"{CTRL_R}rare")
        screen.wait_for("search back: rare")
        screen.type(f"{ENTER}")
        screen.wait_gone("search back: rare")
        screen.type(f"{CTRL_C}")  # clears the line
        screen.type(f"?{ENTER}")
        screen.wait_for("Shift-Tab", "Ctrl-O")
