"""The completion scripts, sourced by the real shells."""

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.state import SessionDB

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Offer = Callable[..., list[str]]


@pytest.fixture
def offered(environ: dict[str, str], tmp_path: Path) -> Offer:
    """`offered("hermes", "conf")`: what bash offers for the last word, after sourcing our script."""
    program = tmp_path / "bin" / "hermes"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hermes.surfaces.cli.main "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    env = {**environ, "PATH": f"{program.parent}{os.pathsep}{environ['PATH']}"}

    def ask(*words: str) -> list[str]:
        line = 'eval "$(hermes completion bash)"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()\n'
        line += '_hermes_completion hermes; printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(
            ["bash", "--norc", "-c", line, "bash", *words],
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert done.stderr == ""
        return done.stdout.split()

    return ask


def test_bash_completes_commands_options_and_keys(offered: Offer) -> None:
    assert offered("hermes", "comp") == ["completion"]
    assert "--worktree" in offered("hermes", "chat", "--work")
    assert offered("hermes", "config", "get", "agent.max") == ["agent.max_turns"]
    assert offered("hermes", "sessions", "ren") == ["rename"]


def test_bash_completes_sessions(offered: Offer, home: Path) -> None:
    with SessionDB(home / "state.db") as db:
        db.create_session("20260101_000000_aaaaaa", "cli")
        db.set_session_title("20260101_000000_aaaaaa", "Baking")
    assert offered("hermes", "sessions", "show", "2026") == ["20260101_000000_aaaaaa"]
    assert offered("hermes", "chat", "--resume", "Bak") == ["Baking"]


def test_nothing_is_made_by_completing(offered: Offer, home: Path) -> None:
    assert offered("hermes", "sessions", "show", "x") == []
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_take_their_script(run: Run, shell: str, tmp_path: Path) -> None:
    script = run("completion", shell).stdout
    assert "_HERMES_COMPLETE" in script
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed here, so only the script itself was looked at")
    (tmp_path / "script").write_text(script)
    checked = subprocess.run([program, "-n", tmp_path / "script"], capture_output=True, timeout=60, check=False)
    assert checked.returncode == 0
