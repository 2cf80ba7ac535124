"""Hooks of config.yaml: nothing runs without consent, a block is a block, and a program that fails refuses."""

import json
import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes.surfaces.cli.exit_codes import Exit
from hermes.testing.replies import calls, says
from hermes.testing.server import ScriptedServer, ServerThread
from tests.surfaces.cli.interactive.conftest import Start
from tests.surfaces.cli.interactive.terminal import CTRL_D, ENTER, ESC, answering

Run = Callable[..., "subprocess.CompletedProcess[str]"]
TOUCH = calls("terminal", command="touch made")


def hook(home: Path, event: str, script: str, **more: Any) -> Path:
    """Put a program into the home and into its config.yaml."""
    file = home / "bin" / event
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    (home / "config.yaml").write_text(json.dumps({"hooks": {event: [{"command": str(file), **more}]}}))
    return file


def model(server: ScriptedServer) -> list[str]:
    return ["--model", "scripted", "--base-url", server.base_url]


def last(server: ScriptedServer, number: int) -> str:
    body: Any = server.requests[number].json
    return str(body["messages"][-1]["content"])


def test_a_hook_finds_no_program_that_a_command_could_have_put_there(run: Run, home: Path, tmp_path: Path) -> None:
    hook(home, "pre_tool_call", "id > /dev/null")
    planted, environment = tmp_path / "planted", tmp_path / ".venv"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "id").write_text(f"#!/bin/sh\ntouch {planted}\n")
    (environment / "bin" / "id").chmod(0o755)
    with ServerThread([TOUCH, says("Done.")]) as server:
        path = f"{environment}/bin:{os.environ['PATH']}"
        run("chat", "-q", "x", "--accept-hooks", *model(server), PATH=path, VIRTUAL_ENV=str(environment))
    assert (tmp_path / "made").exists()
    assert not planted.exists()


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("""cat > "$0.seen"; echo '{"decision": "block", "reason": "not on a Sunday"}'""", "not on a Sunday"),
        ("""echo '{"action": "block", "message": "no touching"}'""", "no touching"),
        ("echo broken >&2; exit 3", "ended with exit code 3: broken"),
        ("sleep 300", "took longer than 0.2 s"),
    ],
)
def test_a_hook_refuses_a_call(run: Run, home: Path, tmp_path: Path, script: str, told: str) -> None:
    file = hook(home, "pre_tool_call", script, timeout=0.2 if "sleep" in script else 20, matcher="term.*")
    with ServerThread([TOUCH, says("I could not.")]) as server:
        run("chat", "-q", "x", "--accept-hooks", *model(server))
    assert told in last(server, 1)
    assert not (tmp_path / "made").exists()
    if "seen" in script:
        seen = json.loads(file.with_name("pre_tool_call.seen").read_text())
        assert (seen["hook_event_name"], seen["tool_name"]) == ("pre_tool_call", "terminal")
        assert seen["tool_input"] == {"command": "touch made"}
        assert seen["cwd"] == str(tmp_path)


def test_a_hook_for_another_tool_and_one_that_says_nothing_let_it_pass(run: Run, home: Path, tmp_path: Path) -> None:
    hook(home, "pre_tool_call", """echo '{"decision": "block"}'""", matcher="termin")
    with ServerThread([TOUCH, says("1")]) as server:
        run("chat", "-q", "x", "--accept-hooks", *model(server))
    assert (tmp_path / "made").exists()


def test_what_nobody_allowed_does_not_run_and_that_is_told(run: Run, home: Path, tmp_path: Path) -> None:
    hook(home, "pre_tool_call", """echo '{"decision": "block"}'""")
    with ServerThread([TOUCH, says("1"), TOUCH, says("2")]) as server:
        done = run("chat", "-q", "x", *model(server))
        assert (tmp_path / "made").exists()
        assert "does not run: nobody has allowed it" in done.stderr
        run("chat", "-q", "x", *model(server), HERMES_ACCEPT_HOOKS="true")
    assert "refused by the hook" in last(server, 3)


def test_a_hook_adds_context_and_another_reads_results(run: Run, home: Path, tmp_path: Path) -> None:
    hook(home, "pre_llm_call", """echo '{"context": "The build is red."}'""")
    with ServerThread([says("1")]) as server:
        run("chat", "-q", "how is it?", "--accept-hooks", *model(server))
    assert "how is it?" in last(server, 0)
    assert "The build is red." in last(server, 0)
    file = hook(home, "post_tool_call", 'cat > "$0.seen"; exit 1')
    with ServerThread([TOUCH, says("2")]) as server:
        assert run("chat", "-q", "x", "--accept-hooks", *model(server)).returncode == 0
    seen = json.loads(file.with_name("post_tool_call.seen").read_text())
    assert '"exit_code": 0' in seen["extra"]["result"]


def test_consent_is_asked_for_once(start: Start, home: Path, project: Path) -> None:
    hook(home, "pre_tool_call", """echo '{"decision": "block", "reason": "the hook says no"}'""")
    with ServerThread(answering({"Go": [TOUCH, says("Over.")]})) as server:
        for _ in range(2):
            with start(server) as screen:
                if not (home / "shell-hooks-allowlist.json").exists():
                    screen.wait_for("Allow it from now on?")
                    screen.type("y\n")
                screen.wait_for("Ask something")
                screen.type(f"Go{ENTER}")
                screen.wait_for("the hook says no", "Over.")
                screen.type(CTRL_D)
                assert screen.ended() == 0
    assert stat.S_IMODE((home / "shell-hooks-allowlist.json").stat().st_mode) == 0o600
    assert not (project / "made").exists()


@pytest.mark.parametrize("event", ["pre_llm_call", "pre_tool_call"])
def test_a_stop_ends_a_hook(start: Start, home: Path, event: str) -> None:
    hook(home, event, ': > "$0.begun"; sleep 300')
    begun = home / "bin" / f"{event}.begun"
    with ServerThread(answering({"Go": [TOUCH]})) as server, start(server, "--accept-hooks") as screen:
        screen.wait_for("Ask something")
        screen.type(f"Go{ENTER}")
        screen.wait_until(begun.exists, "the hook")
        screen.type(ESC)
        screen.wait_for("Stopped.")
        (home / "bin" / event).write_text("#!/bin/sh\n")
        screen.type(f"And now?{ENTER}")
        screen.wait_for("I was asked: And now?")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("hooks: {pre_tool_cal: [{command: x}]}", "did you mean 'hooks.pre_tool_call'"),
        ("hooks: {pre_tool_call: [{command: ''}]}", "a hook has no command"),
        ("hooks: {pre_tool_call: [{command: x, matcher: '('}]}", "hooks.pre_tool_call"),
        ("hooks: {pre_tool_call: [{command: x, timeout: 301}]}", "line 1"),
        ("hooks: {pre_llm_call: [{command: x, matcher: y}]}", "there is no tool"),
    ],
)
def test_a_hook_that_cannot_work_is_told_before_anything_is_sent(run: Run, home: Path, text: str, told: str) -> None:
    (home / "config.yaml").write_text(f"{text}\n")
    with ServerThread([]) as server:
        done = run("chat", "-q", "x", "--accept-hooks", *model(server))
        assert server.requests == []
    assert (done.returncode, told in done.stderr) == (Exit.FAILED, True), done.stderr
