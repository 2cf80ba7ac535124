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
from tests.surfaces.cli.interactive.terminal import Terminal

Offer = Callable[..., list[str]]


@pytest.fixture
def shell_environ(environ: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """An environment in which a shell finds `hermes`."""
    program = tmp_path / "bin" / "hermes"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hermes.surfaces.cli.main "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {**environ, "PATH": f"{program.parent}{os.pathsep}{environ['PATH']}"}


@pytest.fixture
def offered(shell_environ: dict[str, str]) -> Offer:
    """`offered("hermes", "conf")`: what bash offers for the last word, after sourcing our script."""

    def ask(*words: str) -> list[str]:
        line = 'eval "$(hermes completion bash)"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()\n'
        line += '_hermes_completion hermes; printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(
            ["bash", "--norc", "-c", line, "bash", *words],
            env=shell_environ,
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
    assert offered("hermes", "config", "get", "agent.max_t") == ["agent.max_turns"]
    assert offered("hermes", "sessions", "ren") == ["rename"]


def test_bash_completes_sessions(offered: Offer, home: Path) -> None:
    with SessionDB(home / "state.db") as db:
        db.create_session("20260101_000000_aaaaaa", "cli")
        db.set_session_title("20260101_000000_aaaaaa", "Baking")
        db.create_session("20260101_000000_bbbbbb", "cli")
        db.set_session_title("20260101_000000_bbbbbb", "Baking bread")  # bash would put it in without quotes
    assert sorted(offered("hermes", "sessions", "show", "2026")) == ["20260101_000000_aaaaaa", "20260101_000000_bbbbbb"]
    assert offered("hermes", "chat", "--resume", "Bak") == ["Baking"]


def test_nothing_is_made_by_completing(offered: Offer, home: Path) -> None:
    assert offered("hermes", "sessions", "show", "x") == []
    assert list(home.iterdir()) == []


def test_fish_completes_commands_options_and_sessions(shell_environ: dict[str, str], home: Path) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed (scripts/install-system-parts)")
    with SessionDB(home / "state.db") as db:
        db.create_session("20260101_000000_aaaaaa", "cli")

    def offered(line: str) -> list[str]:
        script = 'hermes completion fish | source; complete -C "$argv[1]"'
        done = subprocess.run(
            ["fish", "--no-config", "-c", script, line], env=shell_environ, capture_output=True, text=True, timeout=60
        )
        return [row.partition("\t")[0] for row in done.stdout.splitlines()]

    assert offered("hermes comp") == ["completion"]
    assert offered("hermes chat --work") == ["--worktree"]
    assert offered("hermes sessions show 2026") == ["20260101_000000_aaaaaa"]


def test_zsh_completes_commands_options_and_sessions(shell_environ: dict[str, str], home: Path, tmp_path: Path) -> None:
    program = shutil.which("zsh")
    if program is None:
        pytest.skip("zsh is not installed (scripts/install-system-parts)")
    with SessionDB(home / "state.db") as db:
        db.create_session("20260101_000000_aaaaaa", "cli")
    shell = Terminal([program, "-f", "-i"], {**shell_environ, "TERM": "xterm", "PS1": "zsh> "}, tmp_path)
    try:
        shell.wait_for("zsh>")
        shell.type('autoload -U compinit && compinit -D; eval "$(hermes completion zsh)"; echo loaded $((40 + 2))\n')
        shell.wait_for("loaded 42")
        for typed, wanted in (
            ("hermes comp", "hermes completion"),
            ("hermes chat --work", "hermes chat --worktree"),
            ("hermes sessions show 2026", "hermes sessions show 20260101_000000_aaaaaa"),
        ):
            shell.type(f"{typed}\t")
            shell.wait_for(f"zsh> {wanted}")
            shell.type("\x15")
            shell.wait_gone(f"zsh> {wanted}")
        shell.type("exit\n")
        assert shell.ended() == 0
    finally:
        shell.close()
