"""Hosts on the command line: what was refused is told to who started the run, and `sandbox show` lists what passes."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.testing.replies import calls, says
from hermes.testing.server import ServerThread
from tests.border.levels import why_not

Run = Callable[..., "subprocess.CompletedProcess[str]"]
needs_border = pytest.mark.skipif(bool(why_not("full")), reason=why_not("full"))


def reach(run: Run, host: str, *words: str) -> "subprocess.CompletedProcess[str]":
    script = [calls("terminal", command=f"curl -sS -m 20 http://{host}/"), says("Done.")]
    with ServerThread(script) as server:
        return run("chat", "-q", "Go.", "--model", "scripted", "--base-url", server.base_url, *words)


@needs_border
def test_a_run_with_nobody_there_tells_which_host_was_refused_and_how_to_grant_it(run: Run) -> None:
    done = reach(run, "api.invalid")
    assert done.stdout == "Done.\n"
    assert (
        "(the network refused api.invalid:80: it needs the user's yes, and nobody is here to give it "
        "(the user can grant it: --allow-host api.invalid or terminal.network_hosts))"
    ) in done.stderr


@needs_border
def test_a_rule_of_the_policy_wins_over_the_command_line(run: Run, home: Path) -> None:
    (home / "config.yaml").write_text("approvals: {rules: [{action: deny, tool: network, hosts: ['*.invalid']}]}\n")
    done = reach(run, "api.invalid", "--allow-host", "api.invalid")
    assert "(the network refused api.invalid:80: a rule of the user's denies it)" in done.stderr


@needs_border
def test_what_passes_and_the_newest_word_on_each_host_are_shown(run: Run, home: Path) -> None:
    (home / "config.yaml").write_text(
        "terminal: {network_hosts: ['*.example.org', 'denied.test:443'], network_local: [5432]}\n"
        "approvals: {rules: [{action: deny, hosts: [denied.test]}]}\n"
    )
    for host in ("first.invalid", "second.invalid"):
        reach(run, host)
    lines = [line.strip() for line in run("sandbox", "show").stdout.splitlines()]
    start = lines.index("network    ask")
    assert lines[start + 1 : start + 3] == ["*.example.org passes", "127.0.0.1:5432 passes"]
    assert [line.partition(" in ")[0] for line in lines[start + 3 : start + 5]] == [
        "refused first.invalid:80",
        "refused second.invalid:80",
    ]


@pytest.mark.parametrize("host", ["*", "0.0.0.0/0", "::/0", "", "https://example.org/", "localhost"])
def test_what_is_no_host_is_refused_in_one_line_before_anything_runs(run: Run, host: str) -> None:
    done = run("chat", "-q", "Go.", "--model", "scripted", "--base-url", "http://127.0.0.1:9/v1", "--allow-host", host)
    assert done.returncode != 0
    assert done.stderr.startswith(f"error: --allow-host {host!r} is ")
    assert done.stderr.count("\n") == 1
