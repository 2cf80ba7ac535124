"""Every destructive command of the corpus by every way in: nothing starts, nothing changes, each refusal is a row."""

import json
import logging
import os
import random
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import pytest

from hermes.confinement.policy import AnyConfinement
from hermes.errors import ToolError
from hermes.model_tools import close_task, handle_function_call
from hermes.ops import ApprovalRecorded, SessionCreated
from hermes.runtime.context import Services, TurnContext
from hermes.runtime.tool_executor import run_calls
from hermes.scope import TurnScope
from hermes.seams import Action, Decision, Route, SpawnSpec
from hermes.state import SessionDB
from hermes.testing.fakes import CountedIds, MemorySink
from hermes.testing.memory_store import MemoryStore
from hermes.tools.approval.gate_setup import disk_view, make_gate
from hermes.tools.calling.pool import DaemonPool
from hermes.tools.environments.local import LocalEnvironment, LocalOptions
from hermes.tools.hooks import Hooks
from hermes.tools.registration.manifest import ensure_builtins
from hermes.tools.registry import registry
from hermes.tools.results.shelf import FileShelf
from hermes.tools.supervisor.child import CallChild
from hermes.tools.supervisor.supervisor import ProcessSupervisor
from hermes.tools.view import SessionView
from hermes.types import JsonObject, ToolCall, text_of
from tests.runtime.rooms import Followed, RealClock
from tests.tools.approval.corpora import destructive

FULL = os.environ.get("HERMES_TEST_FULL") == "1"
EVERY = [command for _, command in destructive()]
COMMANDS = EVERY if FULL else random.Random(7).sample(EVERY, len(EVERY) // 10)  # the gate itself is asked about all
# What may be tried where nothing could hold it back: it would only change the folders of the test.
MENDABLE = (
    "rm -rf build",
    "rm -rf ~/photos",
    "echo x >> ~/.bashrc",
    "find . -delete",
    "chmod -R 777 .",
    "cd ~; r''m -r work",
)
TOOLS = ("terminal", "process", "execute_code", "write_file", "patch", "read_file")


class Watched(ProcessSupervisor):
    """The real supervisor with a log of what it was asked to start, and a hand on the switch.

    Only what `starts` names is really started: a command that the gate lets through is seen in the log, and does no
    harm to whoever runs the tests.
    """

    def __init__(self, *starts: str) -> None:
        super().__init__()
        self.spawned: list[str] = []
        self._starts = starts

    async def spawn(self, decision: Decision, spec: SpawnSpec) -> CallChild:
        program = Path(spec.argv[0]).name
        if decision.rule != "runtime":
            self.spawned.append(program)
            if not program.startswith(self._starts or ("nothing",)):
                raise ToolError("the test starts nothing")
        return await super().spawn(decision, spec)

    async def hold(self, decision: Decision, request: JsonObject, confinement: AnyConfinement) -> int:
        self.spawned.append("held")
        if "held" not in self._starts:
            raise ToolError("the test starts nothing")
        return await super().hold(decision, request, confinement)


@dataclass
class Room:
    ctx: TurnContext
    supervisor: Watched
    store: MemoryStore
    work: Path
    calls: int = 0

    async def call(self, name: str, **args: Any) -> dict[str, Any]:
        """One call through the kernel's executor, as a model makes it."""
        self.calls += 1
        call = ToolCall(f"c{self.calls}", name, json.dumps(args))
        (result,) = await run_calls(self.ctx, [call], Followed(self.ctx.sink))
        answer: dict[str, Any] = json.loads(text_of(result.content))
        return answer

    def decisions(self) -> list[ApprovalRecorded]:
        return [op for commit in self.store.commits for op in commit if isinstance(op, ApprovalRecorded)]


@asynccontextmanager
async def room(
    folder: Path, *, settings: dict[str, Any] | None = None, starts: tuple[str, ...] = ()
) -> AsyncIterator[Room]:
    """A turn with everything real and nobody to ask."""
    ensure_builtins()
    home, work = folder / "home", folder / "home" / "work"
    work.mkdir(parents=True, exist_ok=True)
    supervisor, store, pool = Watched(*starts), MemoryStore(), DaemonPool()
    await store.commit(SessionCreated(session_id="s1"))
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
    options = LocalOptions(env=env, source_bashrc=False, processes_folder=folder / "processes")
    environment = LocalEnvironment(supervisor, str(work), options)
    own = folder / "hermes-home"
    sight = disk_view(own, settings or {}, environment.kind, str(work))
    services = Services(
        store=store,
        environment=environment,
        supervisor=supervisor,
        gate=make_gate(own, settings or {}, sight, store, pool.run),
        hooks=Hooks(pool),
        shelf=FileShelf(folder / "results", pool.run),
        pool=pool,
        clock=RealClock(),
        ids=CountedIds(),
        log=logging.getLogger("tests"),
        settings=settings or {},
    )
    found = [one for one in map(registry.get, TOOLS) if one is not None]
    scope = TurnScope(timeout_s=300)
    ctx = TurnContext(
        session_id="s1",
        turn_id="t1",
        task_id="s1",
        services=services,
        tools=SessionView.of(*found),
        scope=scope,
        sink=MemorySink(),
    )
    try:
        async with scope:
            yield Room(ctx, supervisor, store, work)
    finally:
        await environment.close()
        await supervisor.close()
        pool.close()


def tree(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.fixture
def canaries(tmp_path: Path) -> Path:
    """A home with things to lose."""
    home = tmp_path / "home"
    for name in ("work/build/x", "work/src/main.py", ".bashrc", ".ssh/authorized_keys", "photos/1.jpg"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("canary")
    return home


@pytest.mark.parametrize("how", [{}, {"background": True}, {"background": True, "pty": True}])
async def test_nothing_of_the_corpus_starts_from_the_terminal(
    tmp_path: Path, canaries: Path, how: dict[str, bool]
) -> None:
    before = tree(canaries)
    async with room(tmp_path) as it:
        ran = []
        for command in COMMANDS:
            answer = await it.call("terminal", command=command, **how)
            if answer.get("status") not in ("blocked", "error") or answer["exit_code"] != -1:
                ran.append(command)
        assert ran == []
        assert it.supervisor.spawned == []
        assert {row.verdict for row in it.decisions()} == {"deny"}
    assert tree(canaries) == before


async def test_nothing_of_the_corpus_starts_from_a_script_that_hides_it(tmp_path: Path, canaries: Path) -> None:
    before = tree(canaries)
    forms = ("import os\nos.system({0!r})", "import subprocess\nsubprocess.run({0!r}, shell=True)")
    async with room(tmp_path) as it:
        ran = []
        for number, command in enumerate(EVERY):
            answer = await it.call("execute_code", code=forms[number % 2].format(command))
            if answer.get("status") != "error" or it.supervisor.spawned:
                ran.append(command)
                it.supervisor.spawned.clear()
        assert ran == []
    assert tree(canaries) == before


async def test_nothing_of_the_corpus_starts_from_a_scripts_own_calls(tmp_path: Path, canaries: Path) -> None:
    before = tree(canaries)
    limits = {"code_execution": {"max_tool_calls": len(COMMANDS) + 1, "timeout": 200}}
    (canaries / "work" / "commands.json").write_text(json.dumps(COMMANDS))
    code = (
        "import json\nfrom hermes_tools import terminal\n"
        "ran = [c for c in json.load(open('commands.json')) if terminal(c)['exit_code'] != -1]\nprint(json.dumps(ran))"
    )
    async with room(tmp_path, settings=limits, starts=("python",)) as it:
        answer = await it.call("execute_code", code=code)
        assert answer["tool_calls_made"] == len(COMMANDS), answer
        assert json.loads(answer["output"]) == []
        commands = [row for row in it.decisions() if row.tool == "terminal"]
        assert {(row.route, row.verdict) for row in commands} == {("code", "deny")}
        assert set(it.supervisor.spawned) == {Path(sys.executable).name}
    (canaries / "work" / "commands.json").unlink()
    assert tree(canaries) == before


async def test_what_a_person_types_is_held_by_the_hard_floor_alone(tmp_path: Path) -> None:
    async with room(tmp_path) as it:
        for command, is_allowed in (("rm -rf /", False), ("mkfs.ext4 /dev/sda", False), ("rm -rf build", True)):
            action = Action(kind="command", tool="terminal", text=command, cwd=str(it.work), route="person")
            assert (await it.ctx.services.gate.decide(action, it.ctx.scope)).allowed is is_allowed, command


@pytest.mark.parametrize("route", [route for route in get_args(Route) if route != "person"])
async def test_no_route_lets_a_command_of_the_corpus_through(tmp_path: Path, route: Route) -> None:
    async with room(tmp_path) as it:
        gate, scope = it.ctx.services.gate, it.ctx.scope
        for command in COMMANDS:
            action = Action(kind="command", tool="terminal", text=command, cwd=str(it.work), route=route)
            assert not (await gate.decide(action, scope)).allowed, command


async def test_calls_from_outside_an_agent_pass_the_same_gate(
    tmp_path: Path, canaries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(canaries / "work")
    monkeypatch.setenv("HOME", str(canaries))
    # Without a border, where the gate alone stands before them.
    (tmp_path / "hermes-home").mkdir(exist_ok=True)
    (tmp_path / "hermes-home" / "config.yaml").write_text("terminal:\n  sandbox: off\n")
    before = tree(canaries)
    try:
        for command in MENDABLE:
            answer = json.loads(handle_function_call("terminal", {"command": command}, task_id="outside"))
            assert (answer["exit_code"], answer["status"]) == (-1, "blocked"), command
        answer = json.loads(handle_function_call("terminal", {"command": "echo fine"}, task_id="outside"))
        assert answer["output"] == "fine"
    finally:
        close_task("outside")
    assert tree(canaries) == before
    with SessionDB(tmp_path / "hermes-home" / "state.db") as db:
        assert {row["verdict"] for row in db.list_approvals("outside")} == {"allow", "deny"}


async def test_no_tool_writes_the_runtimes_own_policy_credentials_or_approvals(tmp_path: Path) -> None:
    own = tmp_path / "hermes-home"
    own.mkdir(exist_ok=True)
    names = ("config.yaml", ".env", "approvals.json", "state.db", "auth.json", ".approvals.json.lock")
    for name in names:
        (own / name).write_text("canary")
    async with room(tmp_path, starts=("bash", "python")) as it:
        for name in names:
            path = str(own / name)
            (it.work / "link").unlink(missing_ok=True)
            (it.work / "link").symlink_to(path)
            for target in (path, "link", f"../../hermes-home/{name}"):
                await it.call("write_file", path=target, content="changed")
                await it.call("patch", path=target, old_string="canary", new_string="changed")
                await it.call("terminal", command=f"echo changed > {target}")
                await it.call("terminal", command=f"cp /dev/null {target}")
                await it.call("terminal", command=f"sed -i s/canary/changed/ {target}")
                await it.call("terminal", command=f"mv {target} gone")
                await it.call("execute_code", code=f"open({target!r}, 'w').write('changed')")
    assert {name: (own / name).read_text() for name in names} == dict.fromkeys(names, "canary")


@pytest.mark.parametrize("has_pty", [True, False])
async def test_what_is_typed_into_a_shell_passes_the_gate(tmp_path: Path, canaries: Path, *, has_pty: bool) -> None:
    before = tree(canaries)
    async with room(tmp_path, starts=("held", "bash")) as it:
        started = await it.call("terminal", command="bash --norc", background=True, pty=has_pty)
        shell = started["session_id"]

        async def typed(data: str, action: str = "write") -> str:
            return str((await it.call("process", action=action, session_id=shell, data=data))["status"])

        try:
            assert {await typed(command, "submit") for command in MENDABLE} == {"blocked"}
            assert "blocked" in [await typed(part) for part in ("rm -r", "f ~/pho", "tos\n")]
            assert await typed("rX\x7fm -rf ~/photos", "submit") == "blocked"
            assert await typed("\x03") == "ok"
        finally:
            await it.call("process", action="kill", session_id=shell)
    assert tree(canaries).items() >= before.items()  # a shell may leave its history


async def test_switching_asking_off_leaves_the_floor(tmp_path: Path) -> None:
    async with room(tmp_path, settings={"approvals": {"mode": "off"}}) as it:
        await it.call("terminal", command="rm -rf build")
        assert it.supervisor.spawned == ["bash"]
        for command in ("rm -rf /", "mkfs.ext4 /dev/sda1", "shutdown now", "kill -9 -1"):
            assert (await it.call("terminal", command=command))["status"] == "blocked"
        assert it.supervisor.spawned == ["bash"]


async def test_a_subagent_or_editor_may_ask_the_person_it_works_for(tmp_path: Path) -> None:
    async def yes(_question: object, _scope: TurnScope) -> Any:
        return "once"

    async with room(tmp_path) as it:
        gate: Any = replace(it.ctx.services.gate, ask=yes)  # type: ignore[type-var]  # it is the dataclass
        for route, allowed in (("subagent", True), ("acp", True), ("mcp", True), ("cron", False), ("batch", False)):
            action = Action(kind="command", tool="terminal", text="rm -rf build", cwd=str(it.work), route=route)  # type: ignore[arg-type]  # plain text
            assert (await gate.decide(action, it.ctx.scope)).allowed is allowed
