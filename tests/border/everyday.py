"""Everyday work inside the border: each task succeeds at the settings that a new user has, and hardly any asks."""

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import Struct

from hermes import AIAgent
from hermes.runtime.facade import background as facade
from hermes.runtime.setup.process import shared
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import calls, says
from tests.border import registry_files, room, session, world
from tests.border.record import Call

SSH_PORT = 2222
TIME_LIMIT_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Something developers do each day. It succeeds when every call does and the last result matches `expects`."""

    name: str
    steps: tuple[Call, ...]
    expects: str = ""
    before: str = ""  # shell, as the person
    after: str = ""  # shell, as the person: fails the task when it fails
    needs: tuple[str, ...] = ()  # programs
    env: Mapping[str, str] = field(default_factory=dict)
    refused: bool = False  # the last call is turned down, in words that match `expects`


class TaskVerdict(Struct, frozen=True, kw_only=True):
    """What came of a task: why it failed, where it did; how many questions; what is missing where it was skipped."""

    name: str
    failed: str = ""
    questions: list[str] = []
    missing: str = ""
    results: list[str] = []
    seconds: float = 0.0


def search_path() -> str:
    """The person's PATH: the machine's programs, then those beside this interpreter and Rust's, where they are."""
    rust = sorted(Path(os.path.expanduser("~")).glob(".rustup/toolchains/stable*/bin"))
    parts = ["/home/me/.local/bin", "/usr/local/bin", "/usr/bin", "/bin", "/usr/lib/postgresql/15/bin"]
    return ":".join([*parts, *(str(each) for each in rust), str(Path(sys.executable).parent)])


def run(tasks: Sequence[Task], config: str, path: str, tell: Callable[[TaskVerdict], object]) -> None:
    """Do each task in a home of its own and tell its verdict."""
    room.refuse_elsewhere()
    world.make_template(config)
    with registry_files.index() as address:
        known = set(room.processes())
        for task in tasks:
            tell(_do(task, {"PATH": path, "LOCAL_INDEX": address}, known))


def _do(task: Task, env: dict[str, str], known: set[int]) -> TaskVerdict:
    missing = [name for name in task.needs if shutil.which(name, path=f"{env['PATH']}:/usr/sbin") is None]
    if missing:
        return TaskVerdict(name=task.name, missing=", ".join(missing))
    started = time.monotonic()
    world.lay_out()
    registry_files.put_keys(world.HOME)
    if task.before:
        world.by_person(f"set -e\n{task.before}", env=env)
    results, questions = _session(task, {**env, **_expanded(task.env, env)})
    failed = _fault(task, results)
    if not failed and task.after:
        checked = world.by_person(f"set -e\n{task.after}\necho all-well", env=env)
        failed = "" if checked.endswith("all-well\n") else f"afterwards: {checked[-300:]}"
    for pid, line in session.wait_for_quiet(known).items():
        failed = failed or f"left running: {line}"
        room.end(pid)
    return TaskVerdict(
        name=task.name,
        failed=failed,
        questions=questions,
        results=[text[-1500:] for text in results],
        seconds=round(time.monotonic() - started, 2),
    )


def _expanded(own: Mapping[str, str], env: Mapping[str, str]) -> dict[str, str]:
    return {name: value.replace("$PATH", env["PATH"]) for name, value in own.items()}


def _fault(task: Task, results: list[str]) -> str:
    wanted = len(task.steps)
    if len(results) != wanted:
        return f"{len(results)} results of {wanted}: {results}"
    for place, text in enumerate(results):
        is_refused = task.refused and place == wanted - 1
        failure = "" if is_refused else _failure(text)
        if failure:
            return failure
    if task.expects and not re.search(task.expects, results[-1]):
        return f"the result does not match {task.expects!r}: {results[-1][-400:]}"
    return ""


def _failure(text: str) -> str:
    with contextlib.suppress(ValueError):
        told: dict[str, Any] = json.loads(text)
        if told.get("exit_code") not in (None, 0) or told.get("status") in ("blocked", "error"):
            return text[-600:]
        return str(told["error"]) if told.get("error") else ""
    return text[-600:]


def _session(task: Task, env: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """The task's calls in a forked runtime, with somebody there who says yes and is counted."""
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        os.close(ours)
        code = 1
        try:
            session.be_at_home(env)
            with os.fdopen(theirs, "w") as file:
                json.dump(_talk(task), file)
            code = 0
        finally:
            os._exit(code)
    os.close(theirs)
    signal.signal(signal.SIGALRM, lambda *_: room.end(child))
    signal.alarm(int(TIME_LIMIT_S))
    with os.fdopen(ours) as file:
        text = file.read()
    os.waitpid(child, 0)
    signal.alarm(0)
    if not text:
        return ["the session did not end by itself"], []
    results, questions = json.loads(text)
    return results, questions


def _talk(task: Task) -> tuple[list[str], list[str]]:
    questions: list[str] = []

    def ask(question: Any) -> str:
        questions.append(f"{question.description}: {question.command[:200]}")
        return "deny" if task.refused else "once"

    model = ScriptedModel(*(calls(step.tool, **step.arguments) for step in task.steps), says("Done."), says("Done."))
    agent = AIAgent(model=model, cwd=str(world.WORK), approval_callback=ask)
    try:
        answer = agent.run_conversation("Please.")
        return [str(each["content"]) for each in answer["messages"] if each["role"] == "tool"], questions
    finally:
        agent.close()
        asyncio.run_coroutine_threadsafe(shared.close(), facade.get()).result(20)


def start_ssh_server() -> None:
    """A real sshd on loopback where this process may start one; it ends with the room."""
    program = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
    if program is None or os.geteuid() != 0:
        return
    keys = Path("/run/keys")
    keys.mkdir()
    Path("/run/sshd").mkdir(exist_ok=True)
    for name in ("host", "person"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", keys / name], check=True)
    for file in keys.iterdir():
        file.chmod(0o644 if file.name.startswith("person") or file.suffix == ".pub" else 0o600)
    keys.chmod(0o755)
    (keys / "config").write_text(
        f"Port {SSH_PORT}\nListenAddress 127.0.0.1\nHostKey /run/keys/host\nAuthorizedKeysFile /run/keys/person.pub\n"
        "StrictModes no\nUsePAM no\nPidFile /run/keys/pid\nPasswordAuthentication no\nSubsystem sftp internal-sftp\n"
    )
    subprocess.Popen([program, "-D", "-f", keys / "config", "-E", "/run/keys/log"])
