"""Slash commands, typed in a terminal; and how a word finds its command."""

import json
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import UserError
from hermes.host.command import COMMANDS, find, is_command
from hermes.state import SessionDB
from hermes.testing.replies import calls, says, thinks
from hermes.testing.server import ScriptedServer, ServerThread
from tests.surfaces.cli.interactive.conftest import Start
from tests.surfaces.cli.interactive.terminal import ENTER, ESC, TAB, Terminal, answering, hermes

DEMANDED = frozenset(
    [
        "help",
        "new",
        "clear",
        "resume",
        "sessions",
        "title",
        "branch",
        "history",
        "save",
        "retry",
        "undo",
        "model",
        "fallback",
        "tools",
        "toolsets",
        "usage",
        "context",
        "compress",
        "rollback",
        "reasoning",
        "busy",
        "steer",
        "queue",
        "stop",
        "config",
        "doctor",
        "copy",
        "quit",
    ]
)


def test_every_demanded_command_is_there_with_its_words() -> None:
    assert set(COMMANDS.names()) >= DEMANDED
    for name in COMMANDS.names():
        assert COMMANDS.summary(name), name
        assert callable(COMMANDS.load(name).run), name


@pytest.mark.parametrize(
    ("word", "name"),
    [("help", "help"), ("hel", "help"), ("exit", "quit"), ("reset", "new"), ("fork", "branch"), ("mod", "model")],
)
def test_names_aliases_and_unique_beginnings_are_found(word: str, name: str) -> None:
    assert find(word) == name


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("re", "could be /reasoning, /reload-mcp, /resume, /retry, /review, /rewind"),
        ("hlep", "did you mean /help"),
        ("zzz", "see /help"),
    ],
)
def test_what_is_not_found_is_told_with_the_next_step(word: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        find(word)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [("/help", True), ("/queue two words", True), ("/usr/bin is full", False), ("/ alone", False), ("a /b", False)],
)
def test_a_path_is_no_command(text: str, is_one: bool) -> None:
    assert is_command(text) is is_one


def ask(screen: Terminal, text: str, *wanted: str) -> None:
    screen.type(f"{text}{ENTER}")
    screen.wait_for(*wanted)


def users(server: ScriptedServer) -> list[list[str]]:
    """What the model was told by the user, request by request; titles left out."""
    bodies: Any = [request.json for request in server.requests if request.method == "POST"]
    return [
        [str(message["content"]) for message in body["messages"] if message["role"] == "user"]
        for body in bodies
        if "Give a title" not in str(body["messages"][0])
    ]


def test_history_of_a_session_is_taken_back_copied_and_left(start: Start, home: Path) -> None:
    with ServerThread(answering({})) as server, start(server) as screen:
        screen.wait_for("Ask something")
        ask(screen, "one", "I was asked: one")
        ask(screen, "two", "I was asked: two")
        ask(screen, "/undo", "2 messages are taken back", "> two")
        ask(screen, " more", "I was asked: two more")
        assert users(server)[-1] == ["one", "two more"]
        ask(screen, "/retry three", "I was asked: three")
        assert users(server)[-1] == ["one", "three"]
        ask(screen, "/title My talk", "now called 'My talk'")
        ask(screen, "/branch", "You are in a copy now")
        ask(screen, "four", "I was asked: four")
        assert users(server)[-1] == ["one", "three", "four"]
        ask(screen, "/history 1", "> four")
        ask(screen, "/resume My talk", "My talk", "messages")
        ask(screen, "again", "I was asked: again")  # the original goes on, and the copy is still there
        ask(screen, "/sessions", "My talk #2")
        ask(screen, "/new", "A new session; the old one is")
        ask(screen, "five", "I was asked: five")
        assert users(server)[-1] == ["five"]
        ask(screen, "/save kept.json", "2 messages are in")
        screen.type(f"/quit{ENTER}")
        assert screen.ended() == 0
    kept = json.loads((home.parent / "project" / "kept.json").read_text())
    assert [message["content"] for message in kept["messages"]] == ["five", "I was asked: five"]
    with SessionDB(home / "state.db") as db:
        assert db.session_count() == 3


def test_commands_that_ask_the_model_for_a_piece_of_work(start: Start) -> None:
    with ServerThread(answering({})) as server, start(server) as screen:
        screen.wait_for("Ask something")
        ask(screen, "/init In English.", "I was asked: Look through this project")
        ask(screen, "/review main", "I was asked: Review what differs here from main.")
        assert users(server)[-1][0].endswith("In English.")


def test_commands_that_tell_something(start: Start) -> None:
    with ServerThread(answering({})) as server, start(server) as screen:
        screen.wait_for("Ask something")
        ask(screen, "/help", "/rollback", "Ctrl-Z", "@file:PATH")
        screen.capture("help")
        ask(screen, "/help queue", "/queue [TEXT|edit N")
        ask(screen, "/tools", "read_file")
        ask(screen, "/toolsets file", "file: ")
        ask(screen, "/toolsets", "✓ file: patch, read_file", "--all")
        assert "hermes-telegram" not in screen.text
        ask(screen, "/context", "known after the next answer")
        ask(screen, "Hello", "I was asked: Hello", "tokens read")
        ask(screen, "/usage", "This session: ", "calls")
        ask(screen, "/context", "of 128000 tokens (", "in 2 messages.")
        ask(screen, "/compress", "Nothing was changed: there is nothing in it that could be summed up.")
        ask(screen, "/config get display.busy_input_mode", "queue")
        ask(screen, "/doctor python", "✓")
        ask(screen, "/fallback", "No model takes over")
        ask(screen, "/reasoning high", "Effort: high")
        ask(screen, "/model", "The model is scripted", "type to filter")
        screen.type(ESC)
        screen.wait_gone("type to filter")
        ask(screen, "/copy", "characters are copied")
        ask(screen, "/stop", "No turn is running.")
        ask(screen, "/nonsens", "there is no command /nonsens")
        ask(screen, "/model x --provider nobody", "there is no provider 'nobody'")
        ask(screen, "/rollback 99", "there is no snapshot '99'")
        assert b"\x1b]52;c;" in screen.raw


def test_what_a_server_told_of_itself_is_shown_below_the_line_and_by_context(
    environ: dict[str, str], project: Path
) -> None:
    with ServerThread(answering({}), models=("the-one",), window=40_960) as server:
        words = ("--provider", "vllm", "--base-url", server.base_url)  # no name: whichever it has
        with hermes(*words, environ={**environ, "TERM": "xterm-256color"}, cwd=project) as screen:
            screen.wait_for("Ask something", "vllm · ")
            ask(screen, "Hello", "I was asked: Hello", "the-one · ", "context ")
            ask(screen, "/context", "of 40960 tokens (", "in 2 messages.")
            ask(screen, "/model", "The model is the-one", "> the-one  (now)", "type to filter")


def test_a_window_that_nobody_told_is_called_assumed(start: Start) -> None:
    with ServerThread(answering({}), window=None) as server, start(server) as screen:
        screen.wait_for("Ask something")
        ask(screen, "Hello", "I was asked: Hello", "context 4%")
        ask(screen, "/context", "of 128000 tokens (", "it is assumed.")


def test_quick_commands_of_the_config(start: Start, home: Path) -> None:
    (home / "config.yaml").write_text(
        "quick_commands:\n"
        "  here: {type: exec, command: 'echo it is $((6 * 7)); exit 3'}\n"
        "  gone: {type: alias, target: /quit}\n"
    )
    with ServerThread(answering({})) as server, start(server) as screen:
        screen.wait_for("Ask something")
        ask(screen, "/here", "it is 42", "exit code 3")
        ask(screen, "/help", "/gone")
        screen.type(f"/gon{ENTER}")
        assert screen.ended() == 0


def test_commands_paths_and_references_are_completed(start: Start, project: Path) -> None:
    (project / "readme.md").write_text("hello from the readme\n")
    (project / "source").mkdir()
    with ServerThread(answering({})) as server, start(server) as screen:
        screen.wait_for("Ask something", "scripted · ")
        screen.type("/roll")
        screen.wait_for("List checkpoints of the files")
        screen.type(TAB)
        screen.wait_for("> /rollback")
        screen.type("\x15")
        screen.type("see @file:rea" + TAB)
        screen.wait_for("> see @file:readme.md")
        screen.capture("completion")
        screen.type(ENTER + ENTER)
        screen.wait_for("I was asked: see @file:readme.md")
        assert "1|hello from the readme" in users(server)[-1][-1]


def test_long_paste_is_short_on_the_screen_and_whole_when_sent(start: Start) -> None:
    text = "\n".join(f"line {number}" for number in range(40))
    with ServerThread(answering({})) as server, start(server) as screen:
        screen.wait_for("Ask something", "scripted · ")
        screen.type(f"look: \x1b[200~{text}\x1b[201~")
        screen.wait_for("> look: [pasted 40 lines]")
        screen.capture("paste")
        screen.type(ENTER)
        screen.wait_for("I was asked: look: line 0")
    assert users(server)[-1][-1] == f"look: {text}"


def test_several_lines_are_one_message(start: Start) -> None:
    with ServerThread(answering({})) as server, start(server) as screen:
        screen.wait_for("Ask something", "scripted · ")
        screen.type("first")
        screen.wait_for("> first")
        screen.type("\x1b\r")
        screen.type("second")
        screen.wait_for("second")
        screen.type(ENTER)
        screen.wait_for("I was asked: first")
    assert users(server)[-1][-1] == "first\nsecond"


def test_what_the_model_thinks_is_shown_when_asked_for(start: Start) -> None:
    script = answering({"Think": [thinks("It is about ducks.") + says("Quack.")]})
    with ServerThread(script) as server, start(server) as screen:
        screen.wait_for("Ask something")
        ask(screen, "Think", "Quack.")
        assert "ducks" not in screen.text
        ask(screen, "/reasoning show", "is shown")
        ask(screen, "Think again", "It is about ducks.")


def test_escape_sequences_of_a_model_do_nothing(start: Start) -> None:
    evil = "\x1b]0;owned\x07\x1b[2Jclean\x9b31m"
    script = answering({"Go": [calls("terminal", command="printf '\\033]0;owned\\007'"), says(evil)]})
    with ServerThread(script) as server, start(server) as screen:
        screen.wait_for("Ask something")
        ask(screen, "Go", "]0;owned[2Jclean")
    assert b"\x1b]0;owned" not in screen.raw
    assert b"\x1b[2J" not in screen.raw


def test_a_session_is_summed_up_by_hand_and_goes_on(start: Start, home: Path) -> None:
    notes = {"<conversation>": [says("## Active Task\nshort questions")]}
    with ServerThread(answering(notes)) as server, start(server) as screen:
        screen.wait_for("Ask something")
        for number in range(6):
            words = f"number {number} is a question with quite some words in it, " + "and more of them " * 12
            ask(screen, words, f"I was asked: number {number}")
        ask(screen, "/compress the numbers", "messages are", "the session goes on as", "the rest can be searched")
        ask(screen, "and now?", "I was asked: and now?")
        told = users(server)
        assert "topic kept: 'the numbers'" in told[-2][0]
        assert told[-1][-1] == "and now?"
        assert any("short questions" in str(message) for message in server.requests[-1].json["messages"])
        screen.type(f"/quit{ENTER}")
        assert screen.ended() == 0
    with SessionDB(home / "state.db") as db:
        (tip,) = db.list_sessions_rich()
        assert tip["end_reason"] == "user_exit"
        (first, second) = db.get_compression_lineage(tip["id"])
        assert second == tip["id"]
        assert db.get_session(first)["end_reason"] == "compression"  # type: ignore[index]
        assert f"--resume {second}" in screen.text


def test_a_command_stays_on_the_screen_above_its_answer_without_its_secret(start: Start) -> None:
    with ServerThread(answering({})) as server, start(server) as screen:
        screen.wait_for("Ask something")
        ask(screen, "/busy", "waits for its end")
        place = screen.lines.index("> /busy")
        assert "waits for its end" in screen.lines[place + 1]
        ask(screen, "/title sk-proj-abcdefghijklmnopqrstuvwxyz0123456789", "nothing was said")
        assert "> /title" in screen.text
        assert "abcdefghijklmnopqrstuvwxyz0123456789" not in screen.text


def test_the_only_completion_is_taken_and_enter_sends_it(start: Start, project: Path) -> None:
    (project / "notes.txt").write_text("milk")
    with ServerThread(answering({})) as server, start(server) as screen:
        screen.wait_for("Ask something")
        screen.type("Read @file:no")
        screen.wait_for(" notes.txt")
        screen.type(TAB)
        screen.wait_for("> Read @file:notes.txt")
        screen.type(ENTER)
        screen.wait_for("I was asked: Read @file:notes.txt")


def test_another_provider_for_good_leaves_the_address_of_the_first(start: Start, home: Path) -> None:
    (home / ".env").write_text("OPENROUTER_API_KEY=sk-0123456789abcdef\n")
    (home / ".env").chmod(0o600)
    (home / "config.yaml").write_text("model: {default: m, provider: custom, base_url: 'http://127.0.0.1:9/v1'}\n")
    with ServerThread(answering({})) as server, start(server) as screen:
        screen.wait_for("Ask something")
        ask(screen, "/model other --global", "written to config.yaml")
        assert "127.0.0.1:9" in (home / "config.yaml").read_text()
        ask(screen, "/model far --provider openrouter --global", "The model is far from now on")
    kept = (home / "config.yaml").read_text()
    assert "openrouter" in kept
    assert "127.0.0.1:9" not in kept


def test_a_question_of_the_model_is_answered_in_the_input_line(start: Start) -> None:
    asks = calls("clarify", question="Which colour?", choices=["red", "blue"])
    with ServerThread(answering({"Paint": [asks, says("Painted.")]})) as server, start(server) as screen:
        screen.wait_for("Ask something")
        ask(screen, "Paint", "Which colour?", "2. blue")
        ask(screen, "2", "Painted.")
    (told,) = {
        str(message["content"])
        for request in server.requests  # one of them asks for a title
        for message in request.json["messages"]
        if message["role"] == "tool" and "Which colour?" in str(message["content"])
    }
    assert '"user_response":"blue"' in told.replace(" ", "")
