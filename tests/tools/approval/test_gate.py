"""The gate asks, remembers, and denies whenever no clear yes arrives."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from hermes.scope import TurnScope
from hermes.seams import Action, Decision
from hermes.tools.approval.decide import REFUSED
from hermes.tools.approval.gate import ApprovalGate, Ask, DiskView
from hermes.tools.approval.policy import Grant, Policy, PolicyRule
from hermes.tools.approval.question import Answer, ApprovalQuestion
from hermes.tools.network.ask_host import NetworkCall
from hermes.tools.network.wish import HostWish


class MemoryGrants:
    """Keeps grants in a list."""

    def __init__(self) -> None:
        self.kept: list[Grant] = []

    async def given(self, session_id: str) -> Sequence[Grant]:
        return list(self.kept)

    async def add(self, grant: Grant) -> None:
        self.kept.append(grant)

    async def use_once(self, grant: Grant) -> None:
        self.kept.remove(grant)


class Room:
    """A gate with one scripted person."""

    def __init__(self, *answers: Answer | Exception, policy: Policy | None = None, alone: bool = False) -> None:
        self.answers = list(answers)
        self.asked: list[ApprovalQuestion] = []
        self.rows: list[tuple[ApprovalQuestion, Decision]] = []
        ask: Ask | None = None if alone else self._ask
        self.gate = ApprovalGate(
            policy=lambda: policy or Policy(),
            grants=MemoryGrants(),
            record=self._record,
            sight=DiskView(home="/home/me", own_home="/home/me/.hermes", workspace="/work/app"),
            ask=ask,
        )

    async def _ask(self, question: ApprovalQuestion, scope: TurnScope) -> Answer:
        self.asked.append(question)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def _record(self, question: ApprovalQuestion, decision: Decision) -> None:
        self.rows.append((question, decision))

    async def run(self, text: str, *, session: str = "s1", task: str = "t1", kind: str = "command") -> Decision:
        action = Action(kind=kind, tool="terminal", text=text, cwd="/work/app", session_id=session, task_id=task)  # type: ignore[arg-type]  # plain text
        return await self.gate.decide(action, TurnScope())


async def test_harmless_commands_run_unasked_and_are_recorded() -> None:
    room = Room()
    assert (await room.run("ls -la")).allowed
    assert (room.asked, len(room.rows)) == ([], 1)


async def test_once_asks_again_next_time() -> None:
    room = Room("once", "deny")
    assert (await room.run("rm -rf build")).allowed
    refused = await room.run("rm -rf build")
    assert not refused.allowed
    assert refused.reason.endswith(REFUSED[1:])


async def test_session_covers_the_kind_in_the_workspace_only() -> None:
    room = Room("session", "deny", "deny")
    assert (await room.run("rm -rf build")).allowed
    assert (await room.run("rm -rf dist")).allowed
    assert not (await room.run("rm -rf /srv/data/x")).allowed
    assert not (await room.run("rm -rf dist", session="s2")).allowed


async def test_task_binds_to_the_command_and_the_task() -> None:
    room = Room("task", "deny", "deny")
    assert (await room.run("rm -rf build")).allowed
    assert (await room.run("rm -rf build")).allowed
    assert not (await room.run("rm -rf dist")).allowed
    assert not (await room.run("rm -rf build", task="t2")).allowed


async def test_nobody_to_ask_means_deny() -> None:
    assert not (await Room(alone=True).run("rm -rf build")).allowed


async def test_an_answer_that_fails_means_deny() -> None:
    assert not (await Room(RuntimeError("terminal gone")).run("rm -rf build")).allowed


async def test_the_floor_is_never_put_to_a_person() -> None:
    room = Room("always")
    denied = await room.run("rm -rf /")
    assert not denied.allowed
    assert room.asked == []
    assert denied.reason.startswith("BLOCKED (hardline):")


async def test_a_broad_yes_to_something_not_understood_is_refused() -> None:
    assert not (await Room("always").run("$CMD")).allowed


@pytest.mark.parametrize(
    ("kind", "text", "allowed"),
    [
        ("code", "print(1)", True),
        ("code", "import shutil; shutil.rmtree('/')", False),
        ("write", "notes.md", True),
        ("write", "/work/app/.env", True),
        ("write", "/work/app/.git/hooks/pre-commit", False),
        ("write", "/work/app/lib/.git/config", False),
        ("write", "/home/me/.hermes/config.yaml", False),
        ("write", "/etc/passwd", False),
        ("network", "https://example.org/x", True),
        ("tool", "anything", True),
        ("write", "app/main.py", True),
        ("write", "server.js", True),
    ],
)
async def test_every_kind_of_action_passes_the_same_gate(kind: str, text: str, *, allowed: bool) -> None:
    assert (await Room(alone=True).run(text, kind=kind)).allowed is allowed


# Each of them is Python that runs to its end, and would be something else if it stood in the text of a shell command.
_CLOSES_A_HERE_DOCUMENT = """cat = x = HERMES_CODE_END = 1
HERMES_CODE_END
cat <<x
import shutil, os
shutil.rmtree(os.path.expanduser('~/precious'))
x
cat <<HERMES_CODE_END
"""


@pytest.mark.parametrize(
    "code",
    [
        _CLOSES_A_HERE_DOCUMENT,
        _CLOSES_A_HERE_DOCUMENT.replace("HERMES_CODE_END", "END_OF_SCRIPT"),
        "# \x1b]\nimport shutil; shutil.rmtree('/srv/data')",
        "# \\\nimport shutil; shutil.rmtree('/srv/data')",
        "# coding: utf-7\n#+AAo-import os+AAo-os.system('rm -rf ~')",
        "#!/usr/bin/python\n# vim: set fileencoding=utf-7 :\n#+AAo-import os",
    ],
)
async def test_a_script_is_judged_as_python_reads_it(code: str) -> None:
    assert not (await Room(alone=True).run(code, kind="code")).allowed


@pytest.mark.parametrize(
    "code",
    [
        "# -*- coding: utf-8 -*-\nprint('é')",
        "print('rm -rf /')",
        "x = '\\nEOF\\nrm -rf /'",
        "print('\u200b')",
        "a = b = 1\na <<b",
    ],
)
async def test_a_script_that_only_looks_like_shell_runs_unasked(code: str) -> None:
    assert (await Room(alone=True).run(code, kind="code")).allowed


@pytest.mark.parametrize("name", ["a'; rm -rf ~; '", "a\x1b]'", "a\nrm -rf ~", "$(rm -rf ~)", "*"])
async def test_the_name_of_a_file_is_no_shell_text(name: str) -> None:
    assert (await Room(alone=True).run(f"/work/app/{name}", kind="write")).allowed


async def test_an_address_is_no_shell_text() -> None:
    room = Room(alone=True)
    assert (await room.run("https://example.org/?q='; rm -rf ~; '", kind="network")).allowed
    ((question, _),) = room.rows
    assert [command.argv[0] for command in question.analysis.commands] == ["curl"]


async def test_reading_a_page_runs_unasked_and_sending_data_does_not() -> None:
    def fetch(method: str) -> Action:
        return Action(kind="network", tool="web", text="https://example.org/", details={"method": method})

    gate = Room(alone=True).gate
    assert [(await gate.decide(fetch(method), TurnScope())).allowed for method in ("GET", "POST")] == [True, False]


@pytest.mark.parametrize(
    ("route", "mode", "allowed"), [("cron", "deny", False), ("cron", "approve", True), ("batch", "approve", False)]
)
async def test_routes_without_a_person_never_wait_for_one(route: str, mode: str, *, allowed: bool) -> None:
    room = Room("always", policy=Policy(cron_mode=mode))  # type: ignore[arg-type]  # plain text
    action = Action(kind="command", tool="terminal", text="rm -rf build", cwd="/work/app", route=route)  # type: ignore[arg-type]  # plain text
    assert (await room.gate.decide(action, TurnScope())).allowed is allowed
    assert room.asked == []


async def test_scheduled_jobs_never_pass_the_floor() -> None:
    room = Room(policy=Policy(cron_mode="approve"))
    action = Action(kind="command", tool="terminal", text="rm -rf /", route="cron")
    assert not (await room.gate.decide(action, TurnScope())).allowed


async def test_the_session_may_move_but_the_workspace_does_not() -> None:
    room = Room(alone=True)
    action = Action(kind="command", tool="terminal", text="rm passwd", cwd="/etc")
    assert not (await room.gate.decide(action, TurnScope())).allowed


async def test_a_placeholder_for_a_secret_never_reaches_a_shell() -> None:
    room = Room("always")
    assert not (await room.run("echo KEY=⟦secret#0123456789ab⟧ > .env")).allowed
    assert room.asked == []


async def test_leaving_the_sandbox_is_asked_about_even_for_a_harmless_command() -> None:
    room = Room("once")
    details = {"sandbox": "run_outside", "why": "the network is closed"}
    action = Action(kind="command", tool="terminal", text="ls", cwd="/work/app", details=details)
    assert (await room.gate.decide(action, TurnScope())).allowed
    assert [question.description for question in room.asked] == ["the network is closed"]


async def test_a_script_that_reaches_beyond_the_workspace_is_looked_into() -> None:
    bodies = {"/work/app/x.sh": b"#!/bin/sh\nrm -rf ~/photos\n", "/work/app/y.sh": b"rm -rf build\n"}
    room = Room(alone=True)
    sight = DiskView(home="/home/me", own_home="/home/me/.hermes", workspace="/work/app", read_script=bodies.get)
    gate = replace(room.gate, sight=sight)
    for command, allowed in (("bash x.sh", False), ("./x.sh", False), ("bash y.sh", True)):
        action = Action(kind="command", tool="terminal", text=command, cwd="/work/app")
        assert (await gate.decide(action, TurnScope())).allowed is allowed


async def test_a_task_yes_ends_when_the_script_file_changes() -> None:
    bodies = {"/work/app/x.sh": b"rm -rf ~/photos\n"}
    room = Room("task", "deny")
    sight = DiskView(home="/home/me", own_home="/home/me/.hermes", workspace="/work/app", read_script=bodies.get)
    gate = replace(room.gate, sight=sight)
    action = Action(kind="command", tool="terminal", text="bash x.sh", cwd="/work/app", task_id="t")
    assert [(await gate.decide(action, TurnScope())).allowed for _ in range(2)] == [True, True]
    bodies["/work/app/x.sh"] = b"rm -rf ~/documents\n"
    assert not (await gate.decide(action, TurnScope())).allowed


@pytest.mark.parametrize("host", ["away.test", "*.test", "away.test:443", "Away.TEST", "away.test."])
async def test_a_rule_that_denies_a_host_denies_a_connection_to_it(host: str) -> None:
    room = Room("always", policy=Policy(rules=(PolicyRule(action="deny", hosts=(host,)),)))
    call = NetworkCall(room.gate, Action(kind="command", tool="terminal", text="make", cwd="/work/app"), TurnScope())
    assert not (await call.ask(HostWish(host="away.test", port=443))).allowed
    assert room.asked == []


async def test_programs_of_the_model_do_not_ask_for_hosts_in_the_name_of_a_person() -> None:
    """What runs in the background meanwhile would have the person's yes to every host."""
    room, calls, scope = Room("deny"), list[NetworkCall](), TurnScope()
    gate = replace(room.gate, on_call=lambda gate, action, scope: calls.append(NetworkCall(gate, action, scope)))
    await gate.decide(Action(kind="command", tool="terminal", text="./server &", cwd="/work/app"), scope)
    await gate.decide(Action(kind="command", tool="terminal", text="make", cwd="/work/app", route="person"), scope)
    answer = await calls[-1].ask(HostWish(host="away.test", port=443))
    assert not answer.allowed
    assert [question.action.text for question in room.asked] == ["away.test:443"]
