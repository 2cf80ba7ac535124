"""`hermes-agent`: every argument of the contract, in both spellings, acts."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.surfaces.cli.exit_codes import Exit
from hermes.surfaces.cli.runner import runner
from hermes.testing.replies import calls, says, thinks
from hermes.testing.server import ScriptedServer, ServerThread

Agent = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def agent(environ: dict[str, str], tmp_path: Path) -> Agent:
    def run_it(*words: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "hermes.surfaces.cli.runner", *words],
            input=stdin,
            env=environ,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run_it


@pytest.mark.parametrize(("url", "key"), [("--base_url", "--api_key"), ("--base-url", "--api-key")])
def test_both_spellings_act(agent: Agent, url: str, key: str) -> None:
    with ServerThread([says("Yes.")]) as server:
        done = agent("--query", "Is it?", "--model", "scripted", url, server.base_url, key, "sk-mine")
    assert (done.stdout, done.stderr, done.returncode) == ("Yes.\n", "", 0)
    assert server.requests[0].headers["authorization"] == "Bearer sk-mine"


def test_turns_are_limited_to_ten_unless_told_otherwise(agent: Agent, tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"{number}.txt").write_text(str(number))
    script = [calls("read_file", path=f"{number}.txt") for number in range(10)]
    with ServerThread([*script, says("Ten read.")]) as server:
        done = agent("--query", "Read all.", "--model", "scripted", "--base_url", server.base_url)
    assert (done.returncode, done.stdout) == (Exit.BUDGET, "Ten read.\n")
    assert len(server.requests) == 11


def test_tools_are_listed(agent: Agent) -> None:
    done = agent("--list_tools")
    assert done.returncode == 0
    assert "read_file" in done.stdout


def test_verbose_shows_calls_cut_to_the_prefix(agent: Agent, tmp_path: Path) -> None:
    (tmp_path / "a-file-with-a-long-name.txt").write_text("x")
    with ServerThread([calls("read_file", path="a-file-with-a-long-name.txt"), says("Done.")]) as server:
        done = agent(
            "--query",
            "x",
            "--model",
            "scripted",
            "--base_url",
            server.base_url,
            "--verbose",
            "--log_prefix_chars",
            "10",
        )
    assert done.stdout == "Done.\n"
    assert "✓ read_file a-file-wi…" in done.stderr


def test_the_conversation_is_saved_as_training_data(agent: Agent, tmp_path: Path) -> None:
    round_ = says("Look: ") + calls("terminal", command="echo hi")
    with ServerThread([thinks("About ducks.") + round_, says("Done."), says(""), says(""), says("")]) as server:
        words = ["--model", "scripted", "--base_url", server.base_url]
        done = agent("--query", "Go", *words, "--save_trajectories", "--save-sample")
        assert (done.stdout, done.returncode) == ("Done.\n", 0)
        entry = json.loads((tmp_path / "trajectory_samples.jsonl").read_text())
        (alone,) = tmp_path.glob("sample_*.json")
        assert json.loads(alone.read_text()) == entry
        agent("--query", "Say nothing", *words, "--save_trajectories")
    assert (entry["model"], entry["completed"]) == ("scripted", True)
    system, human, call, response, answer = entry["conversations"]
    assert (system["from"], human) == ("system", {"from": "human", "value": "Go"})
    assert call["from"] == "gpt"
    assert call["value"].startswith("<think>\nAbout ducks.\n</think>\nLook: \n<tool_call>\n")
    assert json.loads(call["value"].split("<tool_call>")[1].split("</tool_call>")[0]) == {
        "name": "terminal",
        "arguments": {"command": "echo hi"},
    }
    assert response["from"] == "tool"
    assert json.loads(response["value"].split("\n")[1])["name"] == "terminal"
    assert answer == {"from": "gpt", "value": "<think>\n</think>\nDone."}
    failed = json.loads((tmp_path / "failed_trajectories.jsonl").read_text())
    assert failed["completed"] is False


def names_offered(server: ScriptedServer) -> set[str]:
    body = server.requests[0].json
    assert isinstance(body, dict)
    return {tool["function"]["name"] for tool in body.get("tools", [])}


@pytest.mark.parametrize(
    ("words", "there", "gone"),
    [
        (["--enabled_toolsets", "file"], "read_file", "terminal"),
        (["--enabled-toolsets", "file,terminal"], "terminal", "web_extract"),
        (["--disabled_toolsets", "terminal"], "read_file", "terminal"),
        (["--disabled-toolsets", "terminal"], "read_file", "terminal"),
    ],
)
def test_toolsets_decide_what_the_model_is_offered(agent: Agent, words: list[str], there: str, gone: str) -> None:
    with ServerThread([says("Yes.")]) as server:
        agent("--query", "x", "--model", "scripted", "--base_url", server.base_url, *words)
    assert there in names_offered(server)
    assert gone not in names_offered(server)


def test_a_question_may_be_piped_and_turns_limited(agent: Agent, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    with ServerThread([calls("read_file", path="a.txt"), says("One read.")]) as server:
        done = agent("--model", "scripted", "--base_url", server.base_url, "--max-turns", "1", stdin="Read it.")
    assert (done.returncode, done.stdout) == (Exit.BUDGET, "One read.\n")


def test_every_argument_of_the_contract_is_there_in_both_spellings() -> None:
    wanted = "query model api_key base_url max_turns enabled_toolsets disabled_toolsets list_tools save_trajectories"
    names = [*wanted.split(), "save_sample", "verbose", "log_prefix_chars"]
    spellings = {word for param in runner.params for word in param.opts}
    assert {f"--{name}" for name in names} | {f"--{name.replace('_', '-')}" for name in names} <= spellings
    defaults = {param.name: param.default for param in runner.params}
    assert (defaults["max_turns"], defaults["log_prefix_chars"]) == (10, 20)


def test_listed_tools_are_those_that_a_run_would_get(agent: Agent, home: Path) -> None:
    (home / "config.yaml").write_text("agent: {disabled_toolsets: [web]}\n")

    def states(*words: str) -> dict[str, str]:
        lines = agent("--list-tools", *words).stdout.splitlines()
        return {line.split()[0]: line.split()[2] for line in lines if line.strip()}

    assert states()["terminal"] == states()["read_file"] == "offered"
    assert states()["web_extract"] == "off"
    assert states("--disabled_toolsets", "terminal")["terminal"] == "off"
    only = states("--enabled_toolsets", "file")
    assert (only["read_file"], only["terminal"]) == ("offered", "off")


def test_an_argument_nobody_knows_is_a_usage_error(agent: Agent) -> None:
    done = agent("--querry", "x")
    assert done.returncode == Exit.USAGE
    assert "--query" in done.stderr
