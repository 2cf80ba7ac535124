"""Fakes of what touches the world: files in a dict, commands with canned answers, processes that never start."""

import posixpath
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hermes import seams
from hermes.errors import ToolError
from hermes.scope import TurnScope
from hermes.testing.fakes import FixedGate
from hermes.types import Event, ImagePart, JsonObject

Result = TypeVar("Result")


class MemoryEnvironment:
    """`Environment` whose files are a dict and whose commands answer what `answers` says; others exit with 127."""

    kind = "memory"
    id = "memory-1"

    def __init__(self, cwd: str = "/work", answers: Mapping[str, str] | None = None) -> None:
        self.cwd = cwd
        self.files: dict[str, bytes] = {}
        self.commands: list[str] = []
        self._answers = dict(answers or {})
        self._modes: dict[str, int] = {}
        self._folders = {cwd: True}  # those that were made; the folders of `files` are there as well
        self._gone = False

    async def ready(self) -> str:
        self._check()
        return self.cwd

    async def execute(
        self,
        command: str,
        decision: seams.Decision,
        scope: TurnScope,
        *,
        timeout_s: float | None = None,
        cwd: str | None = None,
        stdin: bytes | None = None,
    ) -> seams.ExecResult:
        self._check()
        if not decision.allowed:
            raise ToolError(decision.reason or "the command was not allowed")
        self.commands.append(command)
        output = self._answers.get(command)
        code = 127 if output is None else 0
        return seams.ExecResult(output=output or "", exit_code=code, cwd=cwd or self.cwd, backend=self.kind)

    async def stat(self, path: str) -> seams.FileInfo | None:
        self._check()
        path = self._absolute(path)
        if path in self.files:
            mode = self._modes.get(path, 0o644)
            return seams.FileInfo(path=path, kind="file", size=len(self.files[path]), mtime_ns=1, mode=mode)
        if self._is_folder(path):
            return seams.FileInfo(path=path, kind="dir", size=0, mtime_ns=1, mode=0o755)
        return None

    async def first_file(self, paths: Sequence[str]) -> str | None:
        self._check()
        return next((path for path in paths if self._absolute(path) in self.files), None)

    async def read(self, path: str, offset: int = 0, size: int | None = None) -> bytes:
        data = self._file(path)
        return data[offset:] if size is None else data[offset : offset + size]

    async def write(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        self._check()
        path = self._absolute(path)
        self.files[path] = data
        self._make_parents(path)
        if mode is not None:
            self._modes[path] = mode

    async def remove(self, path: str) -> None:
        whole = self._absolute(path)
        if not self._is_folder(whole):
            self._file(path)
            del self.files[whole]
            self._modes.pop(whole, None)
        elif await self.list_dir(path):
            raise ToolError(f"the folder {path!r} is not empty")
        else:
            self._folders.pop(whole, None)

    async def rename(self, old: str, new: str) -> None:
        source, target = self._absolute(old), self._absolute(new)
        if not self._is_folder(source):
            self._file(old)
        self._make_parents(target)
        _move(self.files, source, target)
        _move(self._modes, source, target)
        _move(self._folders, source, target)

    async def list_dir(self, path: str) -> list[str]:
        self._check()
        root = self._absolute(path)
        if not self._is_folder(root):
            raise ToolError(f"no folder {path!r}")
        inside = root.rstrip("/") + "/"
        names = (name.removeprefix(inside) for name in (*self.files, *self._folders) if name.startswith(inside))
        return sorted({name.partition("/")[0] for name in names if name})

    async def close(self) -> None:
        self._gone = True

    def _file(self, path: str) -> bytes:
        self._check()
        try:
            return self.files[self._absolute(path)]
        except KeyError:
            raise ToolError(f"no file {path!r}") from None

    def _is_folder(self, path: str) -> bool:
        return path in self._folders or any(_is_within(name, path) for name in self.files if name != path)

    def _make_parents(self, path: str) -> None:
        while (path := posixpath.dirname(path)) not in self._folders and path != "/":
            self._folders[path] = True

    def _absolute(self, path: str) -> str:
        return posixpath.normpath(posixpath.join(self.cwd, path))

    def _check(self) -> None:
        if self._gone:
            raise ToolError("the environment is closed")


def _move(kept: dict[str, Result], source: str, target: str) -> None:
    """Give what is called `source`, or lies in it, its new name."""
    for name in [name for name in kept if _is_within(name, source)]:
        kept[target + name.removeprefix(source)] = kept.pop(name)


def _is_within(name: str, folder: str) -> bool:
    return name == folder or name.startswith(f"{folder.rstrip('/')}/")


class FakeChild:
    """`Child` that has said everything it will say."""

    pid = 4_000_000  # above any real one

    def __init__(self, output: bytes, code: int) -> None:
        self._output = output
        self._code = code
        self.written = b""
        self.is_gone = False

    async def output(self) -> AsyncIterator[bytes]:
        if self._output:
            yield self._output

    async def wait(self) -> int:
        self.is_gone = True
        return self._code

    async def exited(self) -> int:
        return await self.wait()

    async def stop(self, grace_s: float = 1.0) -> None:
        self.is_gone = True

    async def write(self, data: bytes) -> None:
        if self.is_gone:
            raise BrokenPipeError("the child has ended")
        self.written += data

    def close_stdin(self) -> None:
        """Nothing is open."""

    def stderr_tail(self) -> bytes:
        return b""

    def release(self) -> None:
        self.is_gone = True


class FakeSupervisor:
    """`Supervisor` that starts nothing: each spawn gives a child with the canned output."""

    def __init__(self, output: bytes = b"", code: int = 0) -> None:
        self._output = output
        self._code = code
        self.spawned: list[seams.SpawnSpec] = []

    async def spawn(self, decision: seams.Decision, spec: seams.SpawnSpec) -> FakeChild:
        if not decision.allowed:
            raise ToolError(decision.reason or "not allowed")
        if spec.confinement is None:
            raise ToolError("nothing is started without a confinement")
        self.spawned.append(spec)
        return FakeChild(self._output, self._code)

    async def close(self) -> None:
        self.spawned.clear()


class MemoryShelf:
    """`ResultShelf` in a dict."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    async def put(self, name: str, data: bytes) -> str:
        handle = f"hermes://result/{name}-{len(self._kept) + 1}"
        self._kept[handle] = data
        return handle

    async def put_file(self, name: str, path: str) -> str:
        with open(path, "rb") as file:  # noqa: ASYNC230, PTH123 - a fake for small test files
            return await self.put(name, file.read())

    async def read(self, handle: str, offset: int = 0, size: int | None = None) -> bytes:
        data = self._data(handle)
        return data[offset:] if size is None else data[offset : offset + size]

    async def size(self, handle: str) -> int:
        return len(self._data(handle))

    def _data(self, handle: str) -> bytes:
        if handle not in self._kept:
            raise ToolError(f"no result {handle!r}")
        return self._kept[handle]


@dataclass(kw_only=True)
class FakeContext:
    """`ToolContext` for testing one handler: everything in memory, nobody to ask unless you put a gate there."""

    session_id: str = "session"
    task_id: str = "task"
    call_id: str = "call"
    user_task: str | None = None
    scope: TurnScope = field(default_factory=TurnScope)
    environment: seams.Environment = field(default_factory=MemoryEnvironment)
    gate: seams.Gate = field(default_factory=FixedGate)
    supervisor: seams.Supervisor = field(default_factory=FakeSupervisor)
    shelf: seams.ResultShelf = field(default_factory=MemoryShelf)
    settings: Mapping[str, Any] = field(default_factory=dict)
    memo: dict[str, Any] = field(default_factory=dict)
    route: seams.Route = "foreground"
    events: list[Event] = field(default_factory=list)
    details: JsonObject = field(default_factory=dict)
    sight: str | None = None  # what every look gives; without it there is no model to ask
    looks: list[tuple[ImagePart, str]] = field(default_factory=list)

    async def in_thread(self, function: Callable[..., Result], *args: Any, **kwargs: Any) -> Result:
        return function(*args, **kwargs)

    def emit(self, event: Event) -> None:
        self.events.append(event)

    async def note(self, key: str, value: Any) -> None:
        self.details[key] = value

    async def look(self, image: ImagePart, question: str) -> str:
        if self.sight is None:
            raise ToolError("there is no model to look at pictures; give the context a `sight`")
        self.looks.append((image, question))
        return self.sight
