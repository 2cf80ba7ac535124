"""A task with the real local environment on a temporary folder, to call tools as a turn does."""

import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from hermes.scope import TurnScope
from hermes.seams import Action, Decision, Environment, Route
from hermes.tools.builtin import patch, read_file, search_files, write_file
from hermes.tools.environments.local import LocalEnvironment, LocalOptions
from hermes.tools.supervisor.supervisor import ProcessSupervisor
from hermes.tools.supervisor.threads import in_daemon_thread
from hermes.types import Event

Result = TypeVar("Result")
_TOOLS = {
    "read_file": read_file.read_file,
    "write_file": write_file.write_file,
    "patch": patch.patch,
    "search_files": search_files.search_files,
}


class OpenGate:
    """Allows everything but what is below a path in `closed`; remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Action] = []
        self.closed: tuple[str, ...] = ()

    async def decide(self, action: Action, scope: TurnScope) -> Decision:
        self.asked.append(action)
        denied = any(action.text.startswith(path) for path in self.closed)
        return Decision(allowed=not denied, reason="the user said no" if denied else "")


class MemoryShelf:
    """Results by handle."""

    def __init__(self) -> None:
        self.stored: dict[str, bytes] = {}

    async def put(self, name: str, data: bytes) -> str:
        handle = f"hermes://result/{name}"
        self.stored[handle] = data
        return handle

    async def put_file(self, name: str, path: str) -> str:
        return await self.put(name, await in_daemon_thread(Path(path).read_bytes))

    async def read(self, handle: str, offset: int = 0, size: int | None = None) -> bytes:
        return self.stored[handle][offset : None if size is None else offset + size]

    async def size(self, handle: str) -> int:
        return len(self.stored[handle])


class Task:
    """A `ToolContext`, and a way to call the file tools in it."""

    session_id = "session"
    task_id = "task"
    call_id = "call"
    user_task: str | None = None
    route: Route = "foreground"

    def __init__(self, environment: Environment, supervisor: ProcessSupervisor, scope: TurnScope) -> None:
        self.environment = environment
        self.supervisor = supervisor
        self.scope = scope
        self.gate = OpenGate()
        self.shelf = MemoryShelf()
        self.settings: dict[str, Any] = {}
        self.memo: dict[str, Any] = {}
        self.notes: dict[str, Any] = {}
        self.events: list[Event] = []

    async def in_thread(self, function: Callable[..., Result], *args: Any, **kwargs: Any) -> Result:
        return await in_daemon_thread(lambda: function(*args, **kwargs))

    def emit(self, event: Event) -> None:
        self.events.append(event)

    async def note(self, key: str, value: Any) -> None:
        self.notes[key] = value

    async def call(self, name: str, **args: Any) -> dict[str, Any]:
        """The tool's answer as an object; what it raises is raised here."""
        answer = json.loads(await _TOOLS[name](args, ctx=self))
        assert isinstance(answer, dict)
        return answer


@asynccontextmanager
async def task_in(folder: Path, env: Mapping[str, str] | None = None, timeout_s: float = 120) -> AsyncIterator[Task]:
    """A task whose working directory is `folder`."""
    supervisor = ProcessSupervisor()
    environment = local_environment(supervisor, folder, env)
    try:
        async with TurnScope(timeout_s=timeout_s) as scope:
            yield Task(environment, supervisor, scope)
    finally:
        await environment.close()
        await supervisor.close()


def local_environment(
    supervisor: ProcessSupervisor, folder: Path, env: Mapping[str, str] | None = None
) -> LocalEnvironment:
    """This machine, with `folder` as home and working directory."""
    options = LocalOptions(env={"PATH": os.environ["PATH"], "HOME": str(folder), **(env or {})}, source_bashrc=False)
    return LocalEnvironment(supervisor, str(folder), options)
