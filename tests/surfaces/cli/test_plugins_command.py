"""`hermes plugins`, and commands that plugins bring, through the real program."""

import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes.surfaces.cli.exit_codes import Exit
from hermes.testing.replies import calls, says
from hermes.testing.server import ServerThread
from tests.extensions.plugins.samples import write_plugin, write_sample

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def listed(run: Run, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run("plugins", "list", "--json", *words).stdout)
    return found


def test_a_new_plugin_works_and_its_own_test_passes(run: Run, home: Path, tmp_path: Path) -> None:
    made = run("plugins", "new", "my-words")
    assert made.returncode == 0
    assert listed(run) == [
        {**listed(run)[0], "name": "my-words", "status": "not enabled", "version": "0.1.0", "source": "user"}
    ]
    on = run("plugins", "enable", "my-words")
    assert (on.returncode, "my_words_count" in on.stdout) == (0, True)
    assert listed(run, "--enabled")[0]["status"] == "enabled"
    assert run("plugins", "new", "my-words").returncode == Exit.FAILED
    assert run("plugins", "new", "../x").returncode == Exit.FAILED
    assert "neither a folder" in run("plugins", "install", "").stderr
    printed = next(line for line in made.stderr.splitlines() if line.startswith("Its test: "))
    assert str(home / "plugins/my-words") in printed
    tested = subprocess.run(
        [*shlex.split(printed.removeprefix("Its test: ")), "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert "1 passed" in tested.stdout, tested.stdout
    assert run("plugins", "disable", "my-words").returncode == 0
    assert listed(run)[0]["status"] == "disabled"


def test_a_plugin_is_taken_from_git_updated_and_removed(run: Run, home: Path, tmp_path: Path) -> None:
    source = write_plugin(
        tmp_path / "source",
        "def register(ctx): ctx.register_command('one', str)\n",
        "name: taken\nversion: '1'\nneeds: {}\n",
    )

    def git(*words: str) -> None:
        who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        subprocess.run(["git", *who, *words], cwd=source, check=True, capture_output=True)

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    taken = run("plugins", "install", f"file://{source}", "--enable")
    assert taken.returncode == 0, taken.stderr
    assert "needs nothing beyond itself" in taken.stdout
    assert run("plugins", "install", f"file://{source}").returncode == Exit.FAILED
    assert run("plugins", "update", "taken").stdout == "taken is as it is at its source.\n"
    (source / "plugin.yaml").write_text("name: taken\nversion: '2'\nneeds: {hooks: [pre_tool_call]}\n")
    git("commit", "-qam", "two")
    updated = run("plugins", "update", "taken", "--yes")
    assert "declares something else" in updated.stdout
    assert "hermes plugins enable taken" in updated.stderr
    (one,) = listed(run)
    assert "has changed" in one["error"]
    assert run("plugins", "enable", "taken").returncode == 0
    assert "error" not in listed(run)[0]
    assert run("plugins", "remove", "taken").returncode == Exit.FAILED  # nobody to ask
    assert run("plugins", "remove", "taken", "--yes").returncode == 0
    assert listed(run) == []
    assert "taken" not in (home / "config.yaml").read_text()


@pytest.mark.parametrize("style", ["new", "old"])
def test_a_plugins_command_is_one_of_hermes(run: Run, home: Path, style: str) -> None:
    write_sample(home, "ping", style)
    assert "There is no command 'ping'" in run("ping").stderr
    assert run("plugins", "enable", "ping").returncode == 0
    assert run("ping", "--times", "2").stdout.strip() == "pong pong"
    assert run("ping", "--times", "7").returncode == 3
    assert "How often." in run("ping", "--help").stdout
    assert run("ping", "--no-such").returncode == 2
    assert "Answer on the command line" in run("--help").stdout


def test_what_is_broken_is_told_where_a_person_looks(run: Run, home: Path) -> None:
    write_plugin(home / "plugins" / "broken", "import no_such_package_here\n")
    failed = run("plugins", "enable", "broken")
    assert failed.returncode == Exit.FAILED
    assert "needs the Python package 'no_such_package_here'" in failed.stderr
    assert "no_such_package_here" in listed(run)[0]["error"]
    assert "Traceback" in run("plugins", "info", "broken").stdout
    assert "the plugin 'broken' is not loaded" in run("doctor").stdout
    with ServerThread([says("Hi.")]) as server:
        ran = run("chat", "-q", "x", "--model", "m", "--base-url", server.base_url)
    assert ran.stdout.strip() == "Hi."
    assert ran.stderr.count("the plugin 'broken' is not loaded") == 1
    unknown = run("plugins", "enable", "brokn")
    assert (unknown.returncode, "did you mean 'broken'" in unknown.stderr) == (Exit.FAILED, True)


LOUD = """
import os, subprocess
os.write(1, b"loud at load\\n")
def register(ctx):
    ctx.register_hook("pre_llm_call", lambda **_: subprocess.run(["echo", "loud in a hook"]) and None)
"""


def test_what_a_plugin_writes_to_stdout_is_not_in_the_answer(run: Run, home: Path) -> None:
    write_plugin(home / "plugins" / "loud", LOUD)
    (home / "config.yaml").write_text("plugins: {enabled: [loud]}\n")
    with ServerThread([says("Hi."), says("Hi.")]) as server:
        words = ("chat", "-q", "x", "--model", "m", "--base-url", server.base_url)
        plain, lines = run(*words), run(*words, "--json")
    assert plain.stdout == "Hi.\n"
    assert json.loads(lines.stdout.splitlines()[-1])["final_response"] == "Hi."
    assert all(line.startswith("{") for line in lines.stdout.splitlines())
    assert "loud at load\n" in plain.stderr
    assert "loud in a hook\n" in plain.stderr
    assert [one["name"] for one in listed(run)] == ["loud"]


def test_variables_are_asked_for_by_name(run: Run, home: Path) -> None:
    manifest = "name: keyed\nrequires_env:\n  - {name: KEYED_TOKEN, description: a token, url: https://example.org}\n"
    write_plugin(home / "plugins" / "keyed", "def register(ctx): pass\n", manifest)
    on = run("plugins", "enable", "keyed")
    assert "It wants KEYED_TOKEN (a token, https://example.org)" in on.stderr
    assert "KEYED_TOKEN, which is not set: a token" in run("plugins", "info", "keyed").stdout


def test_a_hook_that_is_another_program_than_the_one_allowed_denies(run: Run, home: Path, tmp_path: Path) -> None:
    from hermes.config.load import load_settings
    from hermes.extensions.shell_hooks import accept, configured, not_accepted

    guard = home / "guard"
    guard.write_text("#!/bin/sh\nexit 0\n")
    guard.chmod(0o755)
    (home / "config.yaml").write_text(json.dumps({"hooks": {"pre_tool_call": [{"command": str(guard)}]}}))
    settings = load_settings(home, environ={})
    accept(home, configured(settings)[0])
    assert not_accepted(settings) == []
    with ServerThread([calls("terminal", command="touch made"), says("1")]) as server:
        run("chat", "-q", "x", "--model", "m", "--base-url", server.base_url)
    assert (tmp_path / "made").exists()
    guard.write_text("#!/bin/sh\nexit 0 # another\n")
    assert len(not_accepted(settings)) == 1
    with ServerThread([calls("terminal", command="touch more"), says("2")]) as server:
        run("chat", "-q", "x", "--model", "m", "--base-url", server.base_url)
        body: Any = server.requests[1].json
    assert "another program than the one that was allowed" in str(body["messages"][-1]["content"])
    assert not (tmp_path / "more").exists()
