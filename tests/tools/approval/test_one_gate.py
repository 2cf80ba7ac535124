"""The contract's functions and an agent's gate are one gate: the same outcome and the same row, whoever is asked."""

import asyncio
import os
import pty
import random
import select
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from hermes.config import paths
from hermes.errors import StoreError
from hermes.redact import MARKER
from hermes.runtime.facade import background
from hermes.runtime.options import fold
from hermes.runtime.setup.assembly import assemble
from hermes.runtime.setup.process import ProcessParts
from hermes.scope import TurnScope
from hermes.seams import Action, Gate
from hermes.state import SessionDB
from hermes.testing.model import ScriptedModel
from hermes.tools import approval
from hermes.tools.approval.decide import Verdict
from hermes.tools.approval.made_here import Makings
from hermes.tools.approval.question import ApprovalQuestion
from hermes.tools.approval.terminal_prompt import read_line, terminal_ask
from hermes.tools.calling.outside_agent import outside
from hermes.tools.calling.pool import DaemonPool
from hermes.tools.environments.local import LocalEnvironment
from tests.tools.approval.corpora import destructive, destructive_scripts, everyday, everyday_scripts

FULL = os.environ.get("HERMES_TEST_FULL") == "1"
SHARE = 1 if FULL else 20
PATIENCE_S = 30.0
DELETES_HOME = "#!/bin/bash\nrm -rf ~/documents\n"
SCRIPTS = (
    *("manage.py", "artisan", "gradlew", "app", "a", "x", "main", "x.sh", "a.sh", "run.sh", "script.sh", "install.sh"),
    *(".venv/bin/activate", "configure", "mvnw", "scripts/build.sh", "scripts/deploy.sh", "run_tests.sh", "worker.sh"),
)
LINKS = {"build": "documents", "dist": "documents", "logs": "documents", "notes.txt": ".bashrc", "config": ".ssh"}
Row = dict[str, Any]


@pytest.fixture
def work(hermes_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project in the user's home, with scripts that delete a folder of the home and links out of the project."""
    home = tmp_path / "home"
    work = home / "work"
    for folder in (work, home / "documents", home / ".ssh", home / "elsewhere"):
        folder.mkdir(parents=True)
    (home / ".bashrc").write_text("")
    for name in SCRIPTS:
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(DELETES_HOME)
    for name, target in LINKS.items():
        (work / name).symlink_to(home / target)
    (work / "linked.sh").symlink_to(home / "elsewhere" / "case.sh")
    # A remote from before the session, so that a push to it is nothing that only an agent's session could tell.
    (work / ".git").mkdir()
    (work / ".git" / "config").write_text('[remote "origin"]\n\turl = https://example.org/a.git\n')
    # The contract's functions know of no session, and judge as where no border stands.
    paths.made(hermes_home)
    paths.config_file(hermes_home).write_text("terminal:\n  sandbox: off\n")
    monkeypatch.chdir(work)
    yield work
    approval.clear_session("s")


class _MadeNothing(LocalEnvironment):
    """A session that has made nothing, whatever the test writes while it lasts."""

    def makings(self) -> Makings:
        return Makings(lambda _path: False)


@asynccontextmanager
async def agents_gate(session: str, callback: Callable[..., Any] | None = None) -> AsyncIterator[Gate]:
    """The gate that an agent of `session` passes its actions to."""
    parts = ProcessParts()
    made = await assemble(fold({"model": ScriptedModel(), "approval_callback": callback}), session, parts)
    made.services.environment.__class__ = _MadeNothing
    try:
        yield made.services.gate
    finally:
        await made.close()
        await parts.close()


def action(text: str, session: str, kind: Literal["command", "code"] = "command") -> Action:
    return Action(
        kind=kind,
        tool="terminal" if kind == "command" else "execute_code",
        text=text,
        cwd=str(Path.cwd()),
        route="foreground" if kind == "command" else "code",
        session_id=session,
        task_id=session,
    )


def contract(text: str, kind: str = "command", callback: Callable[..., Any] | None = None) -> dict[str, Any]:
    if kind == "code":
        return approval.check_execute_code_guard(text, "local")
    return approval.check_all_command_guards(text, "local", callback)


def rows(session: str) -> list[Row]:
    """What the home's record says of the session, but for what two equal decisions differ in."""
    db = SessionDB()
    try:
        found = sorted(db.list_approvals(session), key=lambda row: int(row["id"]))
    finally:
        db.close()
    return [{name: row[name] for name in row if name not in ("id", "at", "session_id")} for row in found]


def cases() -> list[tuple[Literal["command", "code"], str]]:
    commands = [command for _, command in destructive()] + everyday()
    scripts = everyday_scripts() + destructive_scripts()
    found = [("command", one) for one in commands] + [("code", one) for one in scripts]
    return random.Random(22).sample(found, len(found) // SHARE)  # type: ignore[arg-type]  # two literals


async def test_every_command_of_the_corpora_is_decided_and_recorded_alike(work: Path) -> None:
    """As it stands, and as a script behind a link; a person says once to whatever is asked."""
    token = approval.set_current_session_key("contract")
    approval.set_approval_callback(lambda _command, _description, **_: "once")
    differ, count, hidden = [], 0, 0
    try:
        async with agents_gate("gate", lambda _: "once") as gate:
            for kind, text in cases():
                (work / "linked.sh").write_text(text, errors="surrogatepass")
                for asked in (text, "bash ./linked.sh") if kind == "command" else (text,):
                    said = contract(asked, kind)  # in the thread of a running loop
                    decision = await gate.decide(action(asked, "gate", kind), TurnScope())
                    count += 1
                    hidden += asked != text and decision.decided_by == "person"
                    if said["approved"] != decision.allowed:
                        differ.append((asked, text))
    finally:
        approval.set_approval_callback(None)
        approval.reset_current_session_key(token)
    by_contract, by_gate = rows("contract"), rows("gate")
    assert differ == []
    assert (len(by_contract), len(by_gate)) == (count, count)
    assert [pair for pair in zip(by_contract, by_gate, strict=True) if pair[0] != pair[1]] == []
    assert hidden > count // 20, "the scripts were read, or this would prove nothing"


async def test_a_script_that_deletes_a_folder_of_the_home_is_denied_and_recorded_by_both(work: Path) -> None:
    said = contract("bash ./x.sh")
    async with agents_gate("gate") as gate:
        decision = await gate.decide(action("bash ./x.sh", "gate"), TurnScope())
    (row,) = rows("default")
    assert (said["approved"], said["status"], said["description"]) == (False, "blocked", "recursive delete")
    assert (said["message"], row) == (decision.reason, rows("gate")[0])
    assert (row["verdict"], row["decided_by"], row["action"]) == ("deny", "nobody", "bash ./x.sh")
    assert f"in {work}/x.sh" in row["reason"]


def raises(*_: Any, **__: Any) -> str:
    raise RuntimeError("the surface is gone")


def leaves(*_: Any, **__: Any) -> str:
    raise SystemExit(0)


async def cancels(*_: Any, **__: Any) -> str:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("callback", "scope", "decided_by"),
    [
        (raises, "timeout", "nobody"),
        (cancels, "timeout", "nobody"),
        (leaves, "timeout", "nobody"),
        (lambda: "once", "timeout", "nobody"),
        (lambda *_, **__: "perhaps", "deny", "person"),
        (lambda *_, **__: object(), "deny", "person"),
        (lambda *_, **__: None, "deny", "person"),
    ],
)
def test_an_answer_that_is_no_clear_yes_is_a_no_and_the_row_tells_who_gave_it(
    work: Path, callback: Callable[..., Any], scope: str, decided_by: str
) -> None:
    assert contract("rm -rf src", callback=callback)["status"] == "blocked"
    (row,) = rows("default")
    assert (row["verdict"], row["scope"], row["decided_by"]) == ("deny", scope, decided_by)


def test_a_callback_that_never_answers_is_left_behind_in_time(work: Path, hermes_home: Path) -> None:
    (hermes_home / "config.yaml").write_text("approvals: {timeout: 0.01}\n")
    release = threading.Event()
    try:
        assert not contract("rm -rf src", callback=lambda *_, **__: release.wait(PATIENCE_S) and "once")["approved"]
    finally:
        release.set()
    assert [(row["scope"], row["decided_by"]) for row in rows("default")] == [("timeout", "nobody")]


async def said_async(command: str, description: str, *, allow_permanent: bool = True) -> str:
    await asyncio.sleep(0)
    return "once" if (command, description, allow_permanent) == ("rm -rf src", "recursive delete", True) else "deny"


def said_by_default(command: str, description: str = "") -> str:
    return "once" if (command, description) == ("rm -rf src", "recursive delete") else "deny"


@pytest.mark.parametrize("callback", [said_async, said_by_default])
def test_a_callback_is_given_the_words_and_may_be_async(work: Path, callback: Callable[..., Any]) -> None:
    assert contract("rm -rf src", callback=callback)["user_approved"]
    assert [(row["verdict"], row["decided_by"]) for row in rows("default")] == [("allow", "person")]


def test_threads_that_ask_at_once_get_each_its_own_answer_and_row(work: Path) -> None:
    names = [f"folder{number}" for number in range(16)]
    together = threading.Barrier(len(names))
    answers: dict[str, bool] = {}

    def ask(name: str) -> None:
        together.wait(PATIENCE_S)
        said = contract(f"rm -rf {name}", callback=lambda command, _, **__: command.endswith(("1", "3", "5")))
        answers[name] = said["approved"]

    threads = [threading.Thread(target=ask, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert answers == {name: name.endswith(("1", "3", "5")) for name in names}
    assert sorted(row["action"] for row in rows("default")) == sorted(f"rm -rf {name}" for name in names)


@pytest.mark.parametrize("by", ["session", "process"])
async def test_without_asking_both_let_the_same_through_but_never_the_floor(
    work: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    if by == "process":
        monkeypatch.setenv("HERMES_YOLO_MODE", "1")
    else:
        approval.enable_session_yolo("s")
    token = approval.set_current_session_key("s")
    try:
        said = [contract("bash ./x.sh"), contract("rm -rf ~")]
    finally:
        approval.reset_current_session_key(token)
    async with agents_gate("s") as gate:
        decided = [await gate.decide(action(text, "s"), TurnScope()) for text in ("bash ./x.sh", "rm -rf ~")]
    assert [one["approved"] for one in said] == [one.allowed for one in decided] == [True, False]
    assert said[1]["hardline"]
    assert said[1]["message"] == decided[1].reason
    assert [row["rule"] for row in rows("s")] == ["mode", "hardline"] * 2


async def test_a_yes_for_the_session_given_to_one_counts_for_the_other(work: Path) -> None:
    token = approval.set_current_session_key("s")
    try:
        assert contract("rm -rf src", callback=lambda *_, **__: "session")["user_approved"]
        async with agents_gate("s", lambda _: "session") as gate:
            covered = await gate.decide(action("rm -rf lib", "s"), TurnScope())
            asked = await gate.decide(action("git push --force", "s"), TurnScope())
        assert contract("git push -f origin main") == {"approved": True, "message": None}
    finally:
        approval.reset_current_session_key(token)
    assert (covered.rule, asked.decided_by) == ("grant", "person")
    assert [row["rule"] for row in rows("s")] == ["effects", "grant", "effects", "grant"]


async def test_a_yes_for_the_task_is_bound_to_the_script_for_both(work: Path) -> None:
    token = approval.set_current_session_key("s")
    try:
        assert contract("bash ./x.sh", callback=lambda *_, **__: "task")["user_approved"]
        async with agents_gate("s") as gate:
            same = await gate.decide(action("bash ./x.sh", "s"), TurnScope())
            (work / "x.sh").write_text(f"{DELETES_HOME}rm -rf ~/pictures\n")
            changed = await gate.decide(action("bash ./x.sh", "s"), TurnScope())
        assert (same.allowed, changed.allowed, contract("bash ./x.sh")["approved"]) == (True, False, False)
    finally:
        approval.reset_current_session_key(token)


def test_a_chat_that_listens_is_asked_and_one_that_does_not_finds_the_question_later(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_GATEWAY_SESSION", "1")
    monkeypatch.setenv("HERMES_SESSION_KEY", "s")
    later = contract("bash ./x.sh")
    assert (later["approved"], later["status"]) == (False, "approval_required")
    assert approval.request_tool_approval("deploy", "it touches production")["status"] == "blocked"

    def notify(facts: dict[str, Any]) -> None:
        assert facts["choices"] == ["once", "task", "session", "always", "deny"]
        threading.Thread(target=approval.resolve_gateway_approval, args=("s", "once")).start()

    approval.register_gateway_notify("s", notify)
    assert contract("bash ./x.sh")["user_approved"]
    approval.register_gateway_notify("s", raises)
    assert contract("bash ./x.sh")["status"] == "blocked"
    approval.unregister_gateway_notify("s")
    told = [(row["verdict"], row["decided_by"]) for row in rows("s")]
    assert told == [("deny", "nobody"), ("deny", "nobody"), ("allow", "person"), ("deny", "nobody")]


@pytest.mark.parametrize(("mode", "is_allowed"), [("deny", False), ("approve", True)])
def test_a_scheduled_job_follows_the_mode_for_those_and_asks_nobody(
    work: Path, hermes_home: Path, monkeypatch: pytest.MonkeyPatch, mode: str, is_allowed: bool
) -> None:
    (hermes_home / "config.yaml").write_text(f"approvals: {{cron_mode: {mode}}}\n")
    monkeypatch.setenv("HERMES_CRON_SESSION", "1")
    monkeypatch.setenv("HERMES_GATEWAY_SESSION", "1")
    said = contract("bash ./x.sh", callback=lambda *_, **__: "once")
    assert (said["approved"], "user_approved" in said) == (is_allowed, False)
    assert contract("rm -rf /")["hardline"]
    assert [row["route"] for row in rows("default")] == ["cron", "cron"]


async def asked_here(text: str, callback: Callable[..., Any]) -> dict[str, Any]:
    return contract(text, callback=callback)


def test_it_may_be_called_on_the_runtimes_own_loop_and_from_within_a_callback(work: Path) -> None:
    def asks_again(command: str, _description: str, **_: Any) -> str:
        inner = contract(f"{command}/inner", callback=lambda *_, **__: "once")
        return "once" if inner["approved"] else "deny"

    for loop in (background.get(), background.get()):
        waiting = asyncio.run_coroutine_threadsafe(asked_here("rm -rf src", asks_again), loop)
        assert waiting.result(PATIENCE_S)["user_approved"]
    assert [row["action"] for row in rows("default")] == ["rm -rf src/inner", "rm -rf src"] * 2


def test_a_decision_that_cannot_be_recorded_is_none(work: Path, hermes_home: Path) -> None:
    paths.state_file(hermes_home).mkdir()
    with pytest.raises(StoreError):
        contract("ls")


def test_hooks_of_the_process_are_told_of_the_question_and_the_answer(work: Path) -> None:
    heard: list[tuple[str, str]] = []
    outside.hooks.add(
        "pre_approval_request", lambda command: heard.append(("asked", command)), owner="test", kind="observer"
    )
    outside.hooks.add(
        "post_approval_response", lambda choice: heard.append(("said", choice)), owner="test", kind="observer"
    )
    try:
        contract("bash ./x.sh", callback=lambda *_, **__: "once")
        contract("ls")
    finally:
        outside.hooks.remove("test")
    assert heard == [("asked", "bash ./x.sh"), ("said", "once")]


def test_a_secret_in_a_command_is_not_in_its_row(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOY_API_KEY", "s3cr3t-value-4242")
    contract("curl -H 'x: s3cr3t-value-4242' http://127.0.0.1/ -o s3cr3t-value-4242.txt")
    (row,) = rows("default")
    assert "s3cr3t" not in str(row)
    assert MARKER.search(row["action"])
    placeholder = contract(row["action"])
    assert (placeholder["approved"], placeholder["status"]) == (False, "blocked")
    assert rows("default")[1]["rule"] == "placeholder"


def test_a_plugins_rule_is_decided_by_the_gate_and_its_yes_holds_for_that_rule_alone(work: Path) -> None:
    token = approval.set_current_session_key("s")
    approval.set_approval_callback(lambda tool, why, **_: "task" if (tool, why) == ("reboot", "of prod") else "deny")
    try:
        first = approval.request_tool_approval("reboot", "of prod", "prod")
        again = approval.request_tool_approval("reboot", "of prod", "prod")
        other = approval.request_tool_approval("reboot", "of all", "all")
        approval.approve_permanent("plugin_rule:all")
        third = approval.request_tool_approval("reboot", "of all", "all")
    finally:
        approval.set_approval_callback(None)
        approval.reset_current_session_key(token)
    assert first == {"approved": True, "message": None, "user_approved": True, "description": "of prod"}
    assert again == third == {"approved": True, "message": None}
    assert (other["approved"], other["status"], other["pattern_key"]) == (False, "blocked", "plugin_rule:all")
    assert set(other) == {"approved", "message", "status", "pattern_key", "description"}
    told = [(row["tool"], row["verdict"], row["rule"], row["decided_by"]) for row in rows("s")]
    assert told == [
        ("reboot", "allow", "effects", "person"),
        ("reboot", "allow", "grant", "policy"),
        ("reboot", "deny", "effects", "person"),
        ("reboot", "allow", "grant", "policy"),
    ]


def test_a_plugins_rule_may_quote_a_name_that_is_no_text(work: Path) -> None:
    assert approval.request_tool_approval("note", "writes \udcff.txt")["status"] == "blocked"
    assert [row["verdict"] for row in rows("default")] == ["deny"]


@pytest.mark.parametrize("backend", ["podman", "Docker", "", "somewhere"])
def test_a_backend_that_nobody_knows_is_judged_like_this_machine(work: Path, backend: str) -> None:
    assert not approval.check_all_command_guards("bash ./x.sh", backend)["approved"]
    assert approval.check_all_command_guards("rm -rf ~", backend)["hardline"]


class Screen:
    """A terminal of this process: what is written to it, and what a person types."""

    def __init__(self) -> None:
        self._master, slave = pty.openpty()
        self.reads, self.writes = os.fdopen(os.dup(slave), "r"), os.fdopen(slave, "w")
        self.text = ""

    def wait_for(self, text: str, times: int = 1) -> None:
        while self.text.count(text) < times:
            assert select.select([self._master], [], [], PATIENCE_S)[0], self.text
            self.text += os.read(self._master, 4096).decode()

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def close(self) -> None:
        self.reads.close()
        self.writes.close()
        os.close(self._master)


@contextmanager
def at_a_terminal() -> Iterator[Screen]:
    """In the test itself: pytest puts its own streams back after every fixture."""
    made = Screen()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "stdin", made.reads)
        patched.setattr(sys, "stderr", made.writes)
        yield made
    made.close()


def test_questions_of_two_threads_come_to_the_terminal_one_after_the_other(work: Path) -> None:
    answers: dict[str, dict[str, Any]] = {}
    threads = [
        threading.Thread(target=lambda name=name: answers.update({name: contract(f"rm -rf {name}")}))
        for name in ("one", "two")
    ]
    with at_a_terminal() as screen:
        for thread in threads:
            thread.start()
        screen.wait_for("[D]eny: ")
        first, second = ("one", "two") if "rm -rf one" in screen.text else ("two", "one")
        assert f"rm -rf {second}" not in screen.text
        screen.type("o\n")
        screen.wait_for("[D]eny: ", times=2)
        screen.type("no\n")
        for thread in threads:
            thread.join(PATIENCE_S)
    assert (answers[first]["approved"], answers[second]["approved"]) == (True, False)
    assert [row["decided_by"] for row in rows("default")] == ["person", "person"]


async def test_a_question_that_is_over_reads_nothing_that_is_typed_later(work: Path) -> None:
    pool = DaemonPool()
    question = ApprovalQuestion(
        action=action("rm -rf src", "s"),
        analysis=approval.analyse("rm -rf src"),
        verdict=Verdict(outcome="ask", reason="recursive delete", scopes=("once",)),
    )

    async def waiting() -> None:
        await terminal_ask(pool.run, PATIENCE_S)(question, TurnScope())

    with at_a_terminal() as screen:
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(waiting())
            await asyncio.to_thread(screen.wait_for, "[D]eny: ")
            asking.cancel()
        await asyncio.to_thread(screen.wait_for, "No answer")
        screen.type("for the next\n")
        assert await asyncio.to_thread(read_line, PATIENCE_S) == "for the next\n"
