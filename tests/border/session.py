"""A session as a user has it, in a process of its own: a scripted model makes the calls of an attack or a task."""

import asyncio
import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

from hermes import AIAgent
from hermes.runtime.facade import background
from hermes.runtime.setup.process import shared
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import calls, says
from tests.border import room, world
from tests.border.record import Call, Strike

TIME_LIMIT_S = 60.0
STRUCK = f"{world.WORK}/struck.fifo"  # what a command writes to when it runs, so that it can be hit then


def run_session(steps: Sequence[Call | Strike], env: Mapping[str, str]) -> list[str]:
    """Make the calls one after the other in a new session; the text of each result. Waits until the session is over."""
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        os.close(ours)
        _be_the_runtime(steps, env, theirs)
    os.close(theirs)
    return _answers_of(child, ours)


class Beside:
    """Another session of the same person, which is in the middle of a call when this returns."""

    def __init__(self, steps: Sequence[Call], env: Mapping[str, str]) -> None:
        self._results: list[str] = []
        self._thread = threading.Thread(target=lambda: self._results.extend(run_session(steps, env)), daemon=True)
        self._thread.start()
        with Path(STRUCK).open() as fifo:
            fifo.read()

    def end(self) -> list[str]:
        """Wait for its end; what its calls gave."""
        self._thread.join(TIME_LIMIT_S)
        return self._results


def _be_the_runtime(steps: Sequence[Call | Strike], env: Mapping[str, str], answers: int) -> None:
    """In the forked process: never returns."""
    code = 1
    try:
        be_at_home(env)
        results = _talk(steps)
        with os.fdopen(answers, "w") as file:
            json.dump([results, list(sys.modules)], file)
        code = 0
    except Exception:  # noqa: BLE001 - the top of a process: whoever started it reads what went wrong
        with os.fdopen(answers, "w") as file:
            json.dump([[f"HARNESS FAULT {traceback.format_exc()}"], []], file)
    finally:
        os._exit(code)


def be_at_home(env: Mapping[str, str]) -> None:
    """In a forked process: stand in the workspace with the person's variables, and no terminal."""
    os.setsid()
    os.environ.clear()
    os.environ.update(variables(env))
    os.chdir(world.WORK)  # noqa: TID251 - this process is a user who stands in the workspace
    quiet = os.open("/run/session.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)


def variables(env: Mapping[str, str]) -> dict[str, str]:
    """What a person's shell exports."""
    return {
        "HOME": str(world.HOME),
        "PATH": world.PATH,
        "LANG": "C.UTF-8",
        "USER": "me",
        "TERM": "xterm",
        "HERMES_HOME": str(world.HERMES),
        "SSH_AUTH_SOCK": "/tmp/ssh-person/agent.1",
        "DBUS_SESSION_BUS_ADDRESS": f"unix:path=/run/user/{os.getuid()}/bus",
        **env,
    }


def _talk(steps: Sequence[Call | Strike]) -> list[str]:
    script = [calls(step.tool, **step.arguments) for step in steps if isinstance(step, Call)]
    strikes = [step for step in steps if isinstance(step, Strike)]
    model = ScriptedModel(*script, says("Done."), says("Done."))
    agent = AIAgent(model=model, cwd=str(world.WORK))
    for strike in strikes:
        threading.Thread(target=_strike, args=(strike,), daemon=True).start()
    results: list[str] = []
    try:
        answer = agent.run_conversation("Go on.")
        results = [str(message["content"]) for message in answer["messages"] if message["role"] == "tool"]
    finally:
        agent.close()
        asyncio.run_coroutine_threadsafe(shared.close(), background.get()).result(20)
    return results


def _strike(strike: Strike) -> None:
    """Wait until the command of the attack runs, then hit the keeper or this very process."""
    with Path(STRUCK).open() as fifo:
        fifo.read()
    keeper = shared.supervisor.keeper_pid
    assert keeper is not None
    if strike.target == "keeper killed":
        os.kill(keeper, signal.SIGKILL)
    elif strike.target == "runtime killed":
        os.kill(os.getpid(), signal.SIGKILL)
    else:
        os.kill(keeper, signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGKILL)


def _answers_of(child: int, pipe: int) -> list[str]:
    deadline = time.monotonic() + TIME_LIMIT_S
    text = b""
    os.set_blocking(pipe, True)
    timer = threading.Timer(TIME_LIMIT_S, room.end, (child,))
    timer.start()
    try:
        with os.fdopen(pipe, "rb") as file:
            text = file.read()
        os.waitpid(child, 0)
    finally:
        timer.cancel()
    if not text:
        return ["the session took too long" if time.monotonic() > deadline else "the session was killed"]
    results: list[str]
    results, modules = json.loads(text)
    _preload(modules)
    return results


def _preload(modules: list[str]) -> None:
    """Import here what a session needed, so that the next ones, which are forked from here, find it there."""
    for name in modules:
        if name not in sys.modules and name.startswith("hermes."):
            importlib.import_module(name)


def run_hermes(words: Sequence[str], env: Mapping[str, str] | None = None) -> str:
    """The real command, as the person types it; what it printed."""
    from hermes.testing.server import ServerThread

    with ServerThread([says("Hello."), says("Hello."), says("Hello.")]) as server:
        line = [sys.executable, "-m", "hermes.surfaces.cli.main", *words]
        line += ["--model", "scripted", "--base-url", server.base_url]
        source = str(Path(__file__).resolve().parents[2] / "src")
        done = subprocess.run(
            line, cwd=world.WORK, env={**variables(env or {}), "PYTHONPATH": source}, capture_output=True,
            stdin=subprocess.DEVNULL, timeout=60, check=False,
        )  # fmt: skip
    return (done.stdout + done.stderr).decode("utf-8", "replace")


def wait_for_quiet(known: set[int], limit_s: float = 1.0) -> dict[int, str]:
    """What still runs beside the processes in `known` after at most a second."""
    deadline = time.monotonic() + limit_s
    while True:
        left = {pid: line for pid, line in room.processes().items() if pid not in known}
        if not left or time.monotonic() > deadline:
            return left
        with contextlib.suppress(InterruptedError):
            signal.sigtimedwait([], 0.02)
