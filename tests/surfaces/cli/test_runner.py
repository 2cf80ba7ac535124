"""`hermes-agent`: every argument of the contract, in both spellings, acts or is refused."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.surfaces.cli.exit_codes import Exit
from hermes.testing.replies import calls, says
from hermes.testing.server import ServerThread

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


@pytest.mark.parametrize("flag", ["--save_trajectories", "--save-sample"])
def test_what_is_not_here_is_refused(agent: Agent, flag: str) -> None:
    done = agent("--query", "x", flag)
    assert done.returncode == Exit.FAILED
    assert "trajectory files" in done.stderr
