"""The ten things a new user does first, with keys typed and the screen read."""

import contextlib
import json
import os
from functools import partial
from pathlib import Path
from typing import Any

from hermes.state import SessionDB
from hermes.testing.replies import calls, says
from hermes.testing.server import ServerThread
from tests.surfaces.cli.interactive.conftest import Start
from tests.surfaces.cli.interactive.terminal import CTRL_C, CTRL_D, DOWN, ENTER, ESC, Terminal, answering

LONG = says("word " * 3_000).timed(chunk_size=5, chunk_delay_s=0.02)


def test_ask_and_read_the_answer(start: Start) -> None:
    script = answering(
        {"What is 6 times 7": [says("# Answer\n\nIt is **42**:\n\n- six\n- seven\n\n```python\n6 * 7\n```")]}
    )
    with ServerThread(script) as server, start(server) as screen:
        screen.wait_for("Ask something")
        screen.type(f"What is 6 times 7?{ENTER}")
        screen.wait_for("It is 42:", "• six", "6 * 7")
        screen.wait_for("scripted · ", "tokens read")
        screen.capture("ask")
        screen.type(CTRL_D)
        assert screen.ended() == 0
        assert "Go on with: hermes --resume" in screen.text
        assert server.mistakes == []


def test_watch_a_tool_run(start: Start, project: Path) -> None:
    (project / "notes.txt").write_text("one\n")
    script = answering({"Count": [calls("terminal", command="seq 1 30; false"), says("It counts to thirty.")]})
    with ServerThread(script) as server, start(server) as screen:
        screen.wait_for("Ask something")
        screen.type(f"Count.{ENTER}")
        screen.wait_for("It counts to thirty.", "terminal seq 1 30; false", "exit code 1", "… 25 lines before", "  30")
        screen.wait_for("✗ terminal seq 1 30; false", "tokens read")
        screen.capture("tool")
        screen.type(CTRL_D)
        assert screen.ended() == 0


def test_an_edit_is_shown_as_a_diff(start: Start, project: Path) -> None:
    (project / "hello.py").write_text("print('hello')\n")
    edit = calls("patch", mode="replace", path="hello.py", old_string="hello", new_string="bye")
    script = answering({"Say bye": [calls("read_file", path="hello.py"), edit, says("Done.")]})
    with ServerThread(script) as server, start(server) as screen:
        screen.wait_for("Ask something")
        screen.type(f"Say bye{ENTER}")
        screen.wait_for("-print('hello')", "+print('bye')", "Done.", "  changed ")
        screen.capture("diff")
        assert b"\x1b[32m    1 +print('bye')" in screen.raw
    assert (project / "hello.py").read_text() == "print('bye')\n"


def test_approve(start: Start, project: Path) -> None:
    (project / "gone").mkdir()
    script = answering({"Remove": [calls("terminal", command="rm -rf gone"), says("It is removed.")]})
    with ServerThread(script) as server, start(server) as screen:
        screen.wait_for("Ask something")
        screen.type(f"Remove it.{ENTER}")
        screen.wait_for("rm -rf gone", "May this run", "1. yes, once", "> 5. no", "allow?")
        screen.type("maybe" + ENTER)
        screen.wait_for("Answer with one of the letters")
        assert (project / "gone").exists()
        screen.capture("approve")
        screen.type("o" + ENTER)
        screen.wait_for("It is removed.", "✓ allowed once")
        screen.wait_gone("allow?")
    assert not (project / "gone").exists()


def test_deny_and_keep_what_was_being_typed(start: Start, project: Path) -> None:
    (project / "kept").mkdir()
    script = answering(
        {"Remove": [says("Well: ") + calls("terminal", command="rm -rf kept").timed(latency_s=1.0), says("I did not.")]}
    )
    with ServerThread(script) as server, start(server) as screen:
        screen.wait_for("Ask something")
        screen.type(f"Remove it.{ENTER}")
        screen.wait_for("working …")
        screen.type("half a thought")
        screen.wait_for("allow?")
        screen.type(" that goes on" + ENTER)
        screen.wait_for("Answer with one of the letters")
        screen.type(ESC)
        screen.wait_for("I did not.", "> half a thought that goes on")
        screen.capture("deny")
    assert (project / "kept").exists()


def test_the_end_of_a_word_is_no_yes(start: Start, project: Path) -> None:
    (project / "kept").mkdir()
    slow = calls("terminal", command="rm -rf kept").timed(latency_s=1.0)
    with ServerThread(answering({"Remove": [slow, says("I did not.")]})) as server, start(server) as screen:
        screen.wait_for("Ask something")
        screen.type(f"Remove it.{ENTER}")
        screen.wait_for("working …")
        screen.type("hell")
        screen.wait_for("> hell")
        screen.wait_for("allow?")
        screen.type("o" + ENTER)
        screen.wait_for("Answer with one of the letters")
        screen.type(ESC)
        screen.wait_for("I did not.")
    assert (project / "kept").exists()


def test_interrupt_ends_the_turn_and_the_next_one_starts(start: Start) -> None:
    script = answering({"Talk": [LONG], "Again": [says("Here I am.")]})
    with ServerThread(script) as server, start(server) as screen:
        screen.wait_for("Ask something")
        screen.type(f"Talk.{ENTER}")
        screen.wait_for("word word")
        screen.type(ESC)
        screen.wait_for("Stopped.")
        screen.capture("interrupt")
        screen.type(f"Again{ENTER}")
        screen.wait_for("Here I am.")


def test_interrupt_during_a_command_ends_it_and_its_children(start: Start) -> None:
    seconds = f"300.{os.getpid()}"  # by this the processes are known, wherever they run
    command = f"trap '' TERM; sleep {seconds} & sleep {seconds}; wait"
    script = answering({"Wait": [calls("terminal", command=command), says("I waited.")], "Again": [says("Here I am.")]})
    with ServerThread(script) as server, start(server) as screen:
        screen.wait_for("Ask something")
        screen.type(f"Wait.{ENTER}")
        screen.wait_for("● terminal")
        screen.wait_until(lambda: len(running(f"sleep\0{seconds}")) == 2, "the command")
        screen.type(ESC)
        screen.wait_for("✗ terminal trap", "(stopped after", "Stopped.")
        screen.type(f"Again{ENTER}")
        screen.wait_for("Here I am.")
        screen.wait_until(lambda: not running(f"sleep\0{seconds}"), "the end of the command")
        assert "I waited." not in screen.text


def running(words: str) -> list[str]:
    """The processes of this machine whose command line begins so."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            found += [file.parent.name] if file.read_text(errors="replace").startswith(words) else []
    return found


def test_type_while_busy_in_order(start: Start) -> None:
    script = answering({"Talk": [says("I talk. " * 60).timed(chunk_size=8, chunk_delay_s=0.03)]})
    with ServerThread(script) as server, start(server) as screen:
        screen.wait_for("Ask something")
        screen.type(f"Talk.{ENTER}")
        screen.wait_for("I talk.")
        screen.type(f"first{ENTER}second{ENTER}third{ENTER}")
        screen.wait_for("waiting 1: first", "waiting 2: second", "waiting 3: third")
        screen.capture("busy")
        screen.wait_for("I was asked: first", "I was asked: second", "I was asked: third")
        screen.wait_gone("waiting 3")
        places = [screen.text.index(f"I was asked: {word}") for word in ("first", "second", "third")]
        assert places == sorted(places)


def test_change_the_model(start: Start) -> None:
    with ServerThread(answering({}), models=("scripted", "other")) as server, start(server) as screen:
        screen.wait_for("Ask something")
        screen.type(f"/model other{ENTER}")
        screen.wait_for("The model is other", "other · ")
        screen.capture("model")
        screen.type(f"Hello{ENTER}")
        screen.wait_for("I was asked: Hello")
    bodies = [request.json for request in server.requests if request.method == "POST"]
    assert all(isinstance(body, dict) and body["model"] == "other" for body in bodies)


def test_resume(start: Start, home: Path) -> None:
    with ServerThread(answering({"name": [says("Your name is Ada.")]})) as server:
        with start(server) as screen:
            screen.wait_for("Ask something")
            screen.type(f"My name is Ada.{ENTER}")
            screen.wait_for("Your name is Ada.")
            screen.type(f"/quit{ENTER}")
            assert screen.ended() == 0
        with start(server, "--continue") as screen:
            screen.wait_for("2 messages", "> My name is Ada.", "Your name is Ada.")
            screen.capture("resume")
            screen.type(f"And now?{ENTER}")
            screen.wait_for("I was asked: And now?")
    with SessionDB(home / "state.db") as db:
        assert db.session_count() == 1


def test_roll_back(start: Start, project: Path) -> None:
    (project / "a.txt").write_text("before\n")
    script = answering({"Change": [calls("terminal", command="echo after > a.txt"), says("Changed.")]})
    with ServerThread(script) as server, start(server, "--checkpoints") as screen:
        screen.wait_for("Ask something")
        screen.type(f"Change it.{ENTER}")
        screen.wait_for("Changed.")
        assert (project / "a.txt").read_text() == "after\n"
        screen.type(f"/rollback{ENTER}")
        screen.wait_for("  1  ")
        screen.type(f"/rollback 1{ENTER}")
        screen.wait_for("The conversation stays as it is")
        screen.capture("rollback")
    assert (project / "a.txt").read_text() == "before\n"


def test_quit_by_every_way(start: Start) -> None:
    with ServerThread(answering({"Talk": [LONG]})) as server:
        for keys in (f"/quit{ENTER}", f"/exit{ENTER}", CTRL_D):
            with start(server) as screen:
                screen.wait_for("Ask something", "scripted · ")
                screen.type(keys)
                assert screen.ended() == 0
        with start(server) as screen:
            screen.wait_for("Ask something", "scripted · ")
            screen.type(CTRL_C)
            screen.wait_for("Ctrl-C again leaves.")
            screen.capture("quit")
            screen.type(CTRL_C)
            assert screen.ended() == 0
        with start(server) as screen:
            screen.wait_for("Ask something", "scripted · ")
            screen.type(f"Talk.{ENTER}")
            screen.wait_for("word word")
            screen.type(CTRL_C + CTRL_C)
            assert screen.ended() == 0


def test_choose_an_answer_by_arrow_number_or_in_own_words(start: Start, project: Path) -> None:
    asked = calls("clarify", question="Which colour?", choices=["red", "blue"])
    script = answering({word: [asked, says(f"{word} it is.")] for word in ("One", "Two", "Three")})
    ways = {"One": (f"{DOWN}{DOWN}", "blue"), "Two": ("1", "1"), "Three": ("green", "green")}
    with ServerThread(script) as server, start(server) as screen:
        screen.wait_for("Ask something")
        for times, (word, (typed, shown)) in enumerate(ways.items(), 1):
            screen.type(f"{word}{ENTER}")
            screen.wait_until(partial(_is_shown, screen, "Other: type it.", times), word)
            screen.type(typed)
            screen.wait_for(shown)
            screen.type(ENTER)
            screen.wait_for(f"{word} it is.")
    asked_last: Any = next(one.json for one in reversed(server.requests) if "Give a title" not in one.raw.decode())
    told = [str(message["content"]) for message in asked_last["messages"] if message["role"] == "tool"]
    assert [json.loads(one)["user_response"] for one in told] == ["blue", "red", "green"]


def _is_shown(screen: Terminal, words: str, times: int) -> bool:
    return screen.text.count(words) >= times
