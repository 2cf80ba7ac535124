"""`hermes approvals`: what is approved, taking it back, and why something was decided."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from hermes.testing.replies import calls, says
from hermes.testing.server import ServerThread
from hermes.tools.approval.grants import HomeGrants, allow_always
from hermes.tools.approval.policy import Grant

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_an_empty_home_says_so_and_makes_nothing(run: Run, home: Path) -> None:
    done = run("approvals", "list")
    assert (done.stdout, done.returncode) == ("", 0)
    assert "Nothing is approved" in done.stderr
    assert list(home.iterdir()) == []


def test_without_a_command_an_empty_home_says_that_nothing_was_decided(run: Run, home: Path) -> None:
    done = run("approvals")
    assert (done.stdout, done.returncode) == ("", 0)
    assert "Nothing was decided yet" in done.stderr
    assert list(home.iterdir()) == []


def test_what_is_listed_can_be_taken_back(run: Run, home: Path) -> None:
    (home / "config.yaml").write_text("# mine\nmodel: x  # keep\n")
    HomeGrants(home).keep(Grant(scope="session", key="recursive delete", path_class="workspace", session_id="s1"))
    allow_always(home, "SQL DROP")
    rows = json.loads(run("approvals", "list", "--json").stdout)
    assert [(row["scope"], row["what"]) for row in rows] == [
        ("session", "recursive delete @ workspace"),
        ("always", "SQL DROP"),
    ]
    assert "SQL DROP" in run("approvals", "list").stdout
    done = run("approvals", "revoke", rows[0]["id"], rows[1]["id"])
    assert (done.returncode, done.stdout.count("Taken back")) == (0, 2)
    assert json.loads(run("approvals", "list", "--json").stdout) == []
    assert (home / "config.yaml").read_text() == "# mine\nmodel: x  # keep\n"


def test_a_wrong_id_changes_nothing(run: Run, home: Path) -> None:
    allow_always(home, "SQL DROP")
    done = run("approvals", "revoke", "a1", "g9")
    assert done.returncode != 0
    assert "no approval 'g9'" in done.stderr
    assert len(json.loads(run("approvals", "list", "--json").stdout)) == 1
    assert run("approvals", "revoke").returncode == 2


def test_why_tells_rule_reason_and_who_decided(run: Run, tmp_path: Path) -> None:
    (tmp_path / "srv/x").mkdir(parents=True)
    with ServerThread([calls("terminal", command="rm -rf srv/x"), says("No."), says("T")]) as server:
        run("chat", "-q", "Do it.", "--model", "scripted", "--base-url", server.base_url)
    (row,) = json.loads(run("approvals", "why", "--json", "rm -rf").stdout)
    assert (row["verdict"], row["rule"], row["decided_by"]) == ("deny", "nobody to ask", "nobody")
    told = run("approvals", "why").stdout
    assert "rm -rf srv/x" in told
    assert "recursive delete" in told
    assert run("approvals").stdout == told
    assert "No such decision" in run("approvals", "why", "mkfs").stderr
