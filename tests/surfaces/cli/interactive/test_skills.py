"""`--skills`, and skills named in a message: their words reach the model, and their variables its commands."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes.surfaces.cli.exit_codes import Exit
from hermes.testing.replies import calls, says
from hermes.testing.server import ScriptedServer, ServerThread
from tests.surfaces.cli.interactive.conftest import Start
from tests.surfaces.cli.interactive.terminal import CTRL_D, ENTER, TAB, answering

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(autouse=True)
def skills(home: Path) -> None:
    for name, text in (("tabs", "Use tabs. @file:nothing"), ("rhymes", "Answer in rhymes.")):
        folder = home / "skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(
            f"---\ndescription: A style.\nrequired_environment_variables: [OVEN_TOKEN]\n---\n{text}"
        )


def model(server: ScriptedServer) -> list[str]:
    return ["--model", "scripted", "--base-url", server.base_url]


def messages(server: ScriptedServer, number: int) -> list[Any]:
    body: Any = server.requests[number].json
    return list(body["messages"])


def test_skills_are_in_the_prompt_of_a_session_and_stay_there(run: Run) -> None:
    with ServerThread([says("1"), says("2")]) as server:
        first = run("chat", "-q", "x", "-s", "tabs,rhymes", "-s", "tabs", "--json", *model(server), OVEN_TOKEN="t")
        session = json.loads(first.stdout.splitlines()[-1])["session_id"]
        run("chat", "-q", "y", "--resume", session, *model(server))
    prompt = str(messages(server, 0)[0]["content"])
    assert (prompt.count("Use tabs."), prompt.count("Answer in rhymes.")) == (1, 1)
    assert messages(server, 0)[1]["content"] == "x"
    assert messages(server, 1)[0] == messages(server, 0)[0]


def test_a_session_that_goes_on_gets_them_with_the_question(run: Run) -> None:
    with ServerThread([says("1"), says("2")]) as server:
        run("chat", "-q", "x", *model(server))
        run("chat", "-q", "y", "--continue", "-s", "rhymes", *model(server), OVEN_TOKEN="t")
    assert messages(server, 1)[0] == messages(server, 0)[0]
    asked = str(messages(server, 1)[-1]["content"])
    assert "Answer in rhymes." in asked
    assert asked.endswith("y")


def test_the_variables_a_skill_names_reach_its_commands(run: Run) -> None:
    show = calls("terminal", command="echo length ${#OVEN_TOKEN}.")
    with ServerThread([show, says("1"), show, says("2")]) as server:
        run("chat", "-q", "x", "-s", "tabs", *model(server), OVEN_TOKEN="tea-pot")
        run("chat", "-q", "x", *model(server), OVEN_TOKEN="tea-pot")
    printed = [str(messages(server, number)[-1]["content"]) for number in (1, 3)]
    assert ["length 7." in printed[0], "length 0." in printed[1]] == [True, True]


def test_they_may_stand_in_dotenv(run: Run, home: Path) -> None:
    (home / ".env").write_text("OVEN_TOKEN=tea-pot\nSPARE_TOKEN=kept\n")
    show = calls("terminal", command="echo length ${#OVEN_TOKEN},${#SPARE_TOKEN}.")
    code = "import os\nprint([name for name in ('OVEN_TOKEN', 'SPARE_TOKEN') if name in os.environ])"
    with ServerThread([show, calls("execute_code", code=code), says("1"), show, says("2")]) as server:
        told = run("chat", "-q", "x", "-s", "tabs", "--yolo", *model(server))
        run("chat", "-q", "x", *model(server))
    printed = [str(messages(server, number)[-1]["content"]) for number in (1, 2, 4)]
    assert ["length 7,0." in printed[0], "['OVEN_TOKEN']" in printed[1], "length 0,0." in printed[2]] == [True] * 3
    assert "OVEN_TOKEN" not in told.stderr


def test_scripts_get_them_too_and_never_a_key_of_a_provider(run: Run, home: Path) -> None:
    (home / "skills" / "tabs" / "SKILL.md").write_text(
        "---\nrequired_environment_variables: [OVEN_TOKEN, LAB_KEY, OPENAI_API_KEY]\n---\nx"
    )
    given = {"providers": {"lab": {"base_url": "http://127.0.0.1:1", "key_env": "LAB_KEY"}}}
    (home / "config.yaml").write_text(json.dumps(given))
    variables = {"OVEN_TOKEN": "t", "LAB_KEY": "k", "OPENAI_API_KEY": "sk-own"}
    code = f"import os\nprint([name for name in {list(variables)} if name in os.environ])"
    with ServerThread([calls("execute_code", code=code), says("1")]) as server:
        told = run("chat", "-q", "x", "-s", "tabs", "--yolo", *model(server), **variables)
    assert "['OVEN_TOKEN']" in str(messages(server, 1)[-1]["content"])
    assert told.stderr.count("a key of a model's provider; no command is given it") == 2


def test_what_lacks_is_told_before_anything_is_sent(run: Run, home: Path) -> None:
    with ServerThread([says("1"), says("2")]) as server:
        gone = run("chat", "-q", "x", "-s", "tab", *model(server))
        both = run("chat", "-q", "x", "-s", "tabs", "--ignore-rules", *model(server))
        assert server.requests == []
        unset = run("chat", "-q", "x", "-s", "tabs", *model(server))
        (home / "skills" / "tabs" / "SKILL.md").write_text(
            "---\nrequired_environment_variables: OPENAI_API_KEY\n---\nx"
        )
        own = run("chat", "-q", "x", "-s", "tabs", *model(server), OPENAI_API_KEY="sk-own")
    assert (gone.returncode, gone.stderr.count("\n")) == (Exit.FAILED, 1)
    assert "there is no skill 'tab'; did you mean 'tabs'?" in gone.stderr
    assert both.returncode == Exit.USAGE
    assert "tabs needs OVEN_TOKEN, which is not set" in unset.stderr
    assert "OPENAI_API_KEY, a key of a model's provider; no command is given it" in own.stderr


def test_a_skill_is_a_command_and_a_reference(start: Start) -> None:
    with ServerThread(answering({})) as server, start(server, OVEN_TOKEN="t") as screen:
        screen.wait_for("Ask something")
        screen.type(f"/rhym{TAB}")
        screen.wait_for("> /rhymes")
        screen.type(f" of the sea{ENTER}")
        screen.wait_for("> /rhymes of the sea", "I was asked: /rhymes of the sea")
        screen.type(f"/new{ENTER}")
        screen.wait_for("A new session")
        screen.type(f"And @skill:none?{ENTER}")
        screen.wait_for("there is no skill 'none?'")
        screen.type(CTRL_D)
    asked = [
        str(messages(server, number))
        for number in range(len(server.requests))
        if "sea" in str(messages(server, number))
    ]
    assert "Answer in rhymes." in asked[0]


def test_a_conversation_begins_with_them(start: Start) -> None:
    with ServerThread(answering({})) as server:
        with start(server, "-s", "tabs", OVEN_TOKEN="t") as screen:
            screen.wait_for("Ask something")
            screen.type(f"one{ENTER}")
            screen.wait_for("I was asked: one")
            screen.type(CTRL_D)
            screen.ended()
        assert "Use tabs. @file:nothing" in str(messages(server, 0)[0]["content"])
        with start(server, "--continue", "-s", "rhymes", OVEN_TOKEN="t") as screen:
            screen.wait_for("> one")
            screen.type(f"two{ENTER}")
            screen.wait_for("I was asked: The user has loaded")
            screen.type(f"three{ENTER}")
            screen.wait_for("I was asked: three")
